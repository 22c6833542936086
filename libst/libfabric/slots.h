// SPDX-License-Identifier: BSD-3-Clause
// The bytes that an operation of the link works on, and registered memory of the provider that they
// may be in.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/registrations.h"

namespace stp::fi {

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
