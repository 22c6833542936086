// SPDX-License-Identifier: BSD-3-Clause
// What one program uses of a link, on all shards together: what its quotas limit (limits.h), and
// its credit for address resolution.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "stp/types.h"

namespace stp::service {

// One thread at a time makes objects for a program; the threads of all shards remove them.
struct ProgramUse {
  using Count = std::atomic<std::uint64_t>;
  Count endpoints{0}, regions{0}, mapped_bytes{0}, mxs{0}, channels{0}, queue_bytes{0}, slots{0};
  Count table_bytes{0};  // of the Bufx of all its endpoints
  // Its credit for resolving unknown addresses: service_requests.cpp.
  std::atomic<Time> asked_until{0};
};

// Adds an amount to one of these numbers while it exists. The ProgramUse must outlive it.
class Counted {
 public:
  Counted() = default;
  Counted(ProgramUse::Count& in, std::uint64_t amount) : in_(&in), amount_(amount) {
    in.fetch_add(amount, std::memory_order_relaxed);
  }
  ~Counted() { reset(); }
  Counted(Counted&& other) noexcept { *this = std::move(other); }
  Counted& operator=(Counted&& other) noexcept {
    if (this == &other) return *this;
    reset();
    in_ = std::exchange(other.in_, nullptr);
    amount_ = other.amount_;
    return *this;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void reset() {
    if (in_ != nullptr) std::exchange(in_, nullptr)->fetch_sub(amount_, std::memory_order_relaxed);
  }

 private:
  ProgramUse::Count* in_ = nullptr;
  std::uint64_t amount_ = 0;
};

}  // namespace stp::service
