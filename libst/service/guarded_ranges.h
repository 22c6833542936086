// SPDX-License-Identifier: BSD-3-Clause
// Ranges of memory, none overlapping, each with the flag of its owner. A signal handler can look up
// an address at any time, even while another thread changes the table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "stp/types.h"

namespace stp::service {

// One flag per client; set when its memory was found torn.
using Torn = std::atomic<bool>;

class GuardedRanges {
 public:
  // Reserves address space for `most` ranges. The kernel allocates its pages when they are first
  // used. Throws std::bad_alloc.
  explicit GuardedRanges(std::size_t most);
  ~GuardedRanges();
  GuardedRanges(const GuardedRanges&) = delete;
  GuardedRanges& operator=(const GuardedRanges&) = delete;

  // `torn` lives until remove(). Returns 0, or -ENOMEM if the table is full.
  int add(MutableBytes range, Torn* torn);
  // Does nothing if no range begins there.
  void remove(MutableBytes range);

  struct Range {
    std::uintptr_t begin = 0, end = 0;
    Torn* torn = nullptr;
  };
  // False: no range holds the address. Async-signal-safe.
  [[nodiscard]] bool find(std::uintptr_t at, Range& out) const;
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  struct Entry {
    std::atomic<std::uintptr_t> begin, end;
    std::atomic<Torn*> torn;
  };
  [[nodiscard]] std::size_t first_not_above(std::uintptr_t at) const;
  void move(std::size_t to, std::size_t from);

  const std::size_t most_;
  std::mutex mutex_;  // held to change entries
  // The highest address first: the kernel mostly maps below what it has mapped before, so a new
  // entry mostly goes to the end.
  Entry* entries_ = nullptr;
  std::atomic<std::size_t> count_{0};
  // Odd: a change is in progress. find() searches again if it has changed meanwhile.
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace stp::service
