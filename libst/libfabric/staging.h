// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of the provider: for short messages, and for data in several segments or in
// memory that the program did not register.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "libst/include/stp/managed.h"

namespace stp::fi {

class Slots;

struct FreeBlock {
  void operator()(std::byte* data) const;
};

// The bytes that an operation reads or writes, and the registration that covers them.
struct Span {
  stm_memory_t memory = nullptr;
  std::byte* data = nullptr;
  Slots* slots = nullptr;  // the pool of the slot; nullptr: not a slot
  std::unique_ptr<std::byte, FreeBlock> own;
  bool registered = false;  // for this operation only

  // The link no longer uses the bytes.
  void release() {
    if (data != nullptr) give_up();
  }

 private:
  void give_up();
};

// Slots of one size, registered in batches and kept until the domain is closed.
class Slots {
 public:
  Slots(std::size_t size, std::size_t at_a_time) : size_(size), at_a_time_(at_a_time) {}
  void set_domain(stm_domain_t domain) { domain_ = domain; }
  // The span becomes a slot. Returns 0, or a negative errno if there is none.
  int take(Span& out);
  void give_back(const Span& span) { free_.push_back({span.data, span.memory}); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::byte* data = nullptr;
    stm_memory_t memory = nullptr;
  };

  const std::size_t size_, at_a_time_;
  stm_domain_t domain_ = nullptr;
  std::vector<std::unique_ptr<std::byte, FreeBlock>> blocks_;
  std::vector<Slot> free_;
};

// Allocates whole pages. nullptr: no memory.
std::unique_ptr<std::byte, FreeBlock> allocate(std::size_t size);

}  // namespace stp::fi
