// SPDX-License-Identifier: BSD-3-Clause
// The base of all DAT objects. Everything except construction happens under the IA's mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "stp/base/assert.h"

namespace stp::udapl {

class Ia;

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
