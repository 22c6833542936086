// SPDX-License-Identifier: BSD-3-Clause
// Flags and results of DAT, and the base of all its objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "stp/base/assert.h"

namespace stp::udapl {

// Flags of DAT calls and attributes. The numbers are those of both interfaces.

using Flags = unsigned;

inline constexpr Flags kSuppress = 0x01, kSolicitedWait = 0x02, kUnsignalled = 0x04,
                       kBarrierFence = 0x08, kEvdThreshold = 0x10;

inline constexpr Flags kStreamSoftware = 0x001, kStreamCr = 0x010, kStreamDto = 0x020,
                       kStreamConnection = 0x040, kStreamBind = 0x080, kStreamAsync = 0x100;

inline constexpr Flags kLocalRead = 0x01, kRemoteRead = 0x02, kLocalWrite = 0x10,
                       kRemoteWrite = 0x20, kAllPrivileges = 0x33;

// The result of a DAT call. The numbers are those of both DAT interfaces, without class and
// subtype.
enum class Result : std::uint32_t {
  kSuccess = 0,
  kAbort = 0x010000,
  kConnQualInUse = 0x020000,
  kInsufficientResources = 0x030000,
  kInternalError = 0x040000,
  kInvalidHandle = 0x050000,
  kInvalidParameter = 0x060000,
  kInvalidState = 0x070000,
  kLengthError = 0x080000,
  kPrivilegesViolation = 0x0b0000,
  kProtectionViolation = 0x0c0000,
  kQueueEmpty = 0x0d0000,
  kQueueFull = 0x0e0000,
  kTimeoutExpired = 0x0f0000,
  kInvalidAddress = 0x120000,
  kInterruptedCall = 0x130000,
  kConnQualUnavailable = 0x140000,
};

// Converts a negative errno of the managed API.
Result result_of(int error);
// The same for a failure whose cause no result of DAT can tell. Also prints the text of st_strerror
// on stderr, because a DAT consumer cannot ask for it. `what`: what has failed.
Result told_result_of(int error, const std::string& what);
// Prints `why`, a text of another call, in the same form.
void tell(const std::string& what, const char* why);

class Ia;

// Everything except construction happens under the IA's mutex.
class Object : public std::enable_shared_from_this<Object> {
 public:
  enum class Kind : std::uint8_t { kCr, kEp, kEvd, kIa, kLmr, kPsp, kPz, kRmr, kRsp, kCno, kSrq };

  Object(Kind kind, Ia& ia);
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] Ia& ia() const { return ia_; }

  // The handle that the front gives out; events carry it.
  void set_handle(void* handle) { handle_ = handle; }
  [[nodiscard]] void* handle() const { return handle_; }

  // Freed, by its own call or with the IA: calls no longer find it.
  [[nodiscard]] bool freed() const { return freed_.load(std::memory_order_acquire); }
  void mark_freed() { freed_.store(true, std::memory_order_release); }
  // Whether an object of that IA, which is being made, may depend on this one. What another IA has
  // is under the mutex of that.
  [[nodiscard]] bool is_of(const Ia& ia) const { return &ia_ == &ia && !freed(); }

  // Objects that depend on this one.
  void use() { ++users_; }
  void unuse() {
    STP_ASSERT(users_ > 0, "what depends on an object no more has done so");
    --users_;
  }
  [[nodiscard]] bool used() const { return users_ != 0; }

  // The IA closes abruptly: releases the objects of the managed API.
  virtual void abandon() {}

  std::atomic<std::uint64_t> consumer_context{0};

 protected:
  template <typename Self>
  std::shared_ptr<Self> self() {
    return std::static_pointer_cast<Self>(shared_from_this());
  }

 private:
  Ia& ia_;
  const std::shared_ptr<Object> keep_;  // keeps the IA alive as long as its objects
  void* handle_ = nullptr;
  unsigned users_ = 0;
  std::atomic<bool> freed_{false};
  const Kind kind_;
};

}  // namespace stp::udapl
