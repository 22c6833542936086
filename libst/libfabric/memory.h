// SPDX-License-Identifier: BSD-3-Clause
// The bytes that operations work on: the segments of a call, registered memory of the program or of
// the provider that the link reads or writes, and copies from one to the other.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/info.h"

namespace stp::fi {

// ---- segments ----

struct Segments {
  std::array<iovec, kSegments> iov{};
  std::array<void*, kSegments> desc{};
  std::size_t count = 0;
  std::size_t length = 0;  // of all
};

// Fills `out` from a call's arguments. -FI_EINVAL: too many segments.
int read_segments(const iovec* iov, void** desc, std::size_t count, Segments& out);
// A segment that is not empty is nowhere.
inline bool lacks_some(const iovec* iov, std::size_t count) {
  return std::any_of(iov, iov + count, [](const iovec& part) {
    return part.iov_base == nullptr && part.iov_len != 0;
  });
}
inline std::size_t length_of(const iovec* iov, std::size_t count) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += iov[i].iov_len;
  return length;
}
Segments one_segment(const void* buffer, std::size_t length, void* desc);
// The segments without their first `length` bytes.
Segments without(const Segments& segments, std::size_t length);
// Cuts the segments to their first `length` bytes.
Segments shortened(const Segments& segments, std::size_t length);
void scatter(const std::byte* from, const Segments& to, std::size_t length);
inline void scatter(const std::byte* from, const Segments& to) {
  scatter(from, to, to.length);
}
void gather(const Segments& from, std::byte* to);

// ---- memory of the program ----

// Memory of the program that operations under way read or write. Those on the same bytes share one
// registration: it stays theirs until the last one is done, and through a stpd each costs
// milliseconds. Under the link's mutex.
class Registrations {
 public:
  struct Bytes {
    std::byte* data;
    std::size_t length;
    unsigned access;
    auto operator<=>(const Bytes&) const = default;
  };
  // One, with those that use it.
  class Shared {
   public:
    [[nodiscard]] stm_memory_t memory() const { return memory_; }
    // Whoever has taken it does not use it any more.
    void give_back();

   private:
    friend class Registrations;
    Registrations* of_ = nullptr;
    Bytes bytes_{};
    stm_memory_t memory_ = nullptr;
    std::size_t users_ = 0;
  };

  void set_domain(stm_domain_t domain) { domain_ = domain; }
  // 0 or a status.
  int take(const Bytes& bytes, Shared*& out) {
    const auto place = in_use_.try_emplace(bytes).first;
    auto& found = place->second;
    if (found.users_ == 0) {
      const auto error =
          stm_memory_register(domain_, bytes.data, bytes.length, bytes.access, &found.memory_);
      if (error != 0) {
        in_use_.erase(place);
        return error;
      }
      found.of_ = this;
      found.bytes_ = bytes;
    }
    ++found.users_;
    out = &found;
    return 0;
  }
  [[nodiscard]] std::size_t size() const { return in_use_.size(); }
  // How many have ended.
  [[nodiscard]] std::uint64_t released() const { return released_; }

 private:
  stm_domain_t domain_ = nullptr;
  std::map<Bytes, Shared> in_use_;
  std::uint64_t released_ = 0;
};

inline void Registrations::Shared::give_back() {
  if (--users_ != 0) return;
  stm_memory_release(memory_);
  ++of_->released_;
  of_->in_use_.erase(Bytes(bytes_));  // the last access to this
}

// ---- memory of the provider ----

class Slots;

// Registered memory of the provider: for short messages, and for data in several segments or in
// memory that the program did not register.
struct FreeBlock {
  void operator()(std::byte* data) const;
};

// The bytes that an operation reads or writes, and the registration that covers them.
struct Span {
  stm_memory_t memory = nullptr;
  std::byte* data = nullptr;
  Slots* slots = nullptr;  // the pool of the slot; nullptr: not a slot
  std::unique_ptr<std::byte, FreeBlock> own;
  Registrations::Shared* registered = nullptr;  // for this operation, and others on its bytes

  // The link no longer uses the bytes.
  void release() {
    if (data != nullptr) give_up();
  }

 private:
  void give_up();
};

// Slots of one size, registered in batches and kept until the domain is closed. Through a stpd a
// registration costs milliseconds, so each batch is twice as long as the one before, up to a limit.
class Slots {
 public:
  Slots(std::size_t size, std::size_t first, std::size_t most)
      : size_(size), first_(first), most_(most), next_(first) {}
  void set_domain(stm_domain_t domain) { domain_ = domain; }
  // The span becomes a slot. Returns 0, or a negative errno if there is none.
  int take(Span& out);
  void give_back(const Span& span) { free_.push_back({span.data, span.memory}); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool has_lent() const { return free_.size() != made_; }

 private:
  struct Slot {
    std::byte* data = nullptr;
    stm_memory_t memory = nullptr;
  };

  int add_batch();
  int add(std::size_t count);

  const std::size_t size_, first_, most_;
  std::size_t next_;  // of the next batch
  std::size_t made_ = 0;
  stm_domain_t domain_ = nullptr;
  std::vector<std::unique_ptr<std::byte, FreeBlock>> blocks_;
  std::vector<Slot> free_;
};

// Allocates whole pages. nullptr: no memory.
std::unique_ptr<std::byte, FreeBlock> allocate(std::size_t size);

}  // namespace stp::fi
