// SPDX-License-Identifier: BSD-3-Clause
// The lock for driving a Service. The polling thread holds it until somebody else wants it, and
// checks wanted() each turn: no request waits longer than one turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp::service {

// A ticket lock: serves waiters in the order of arrival. Without contention, the usual case, each
// call is one atomic operation: a link is driven some million times a second. The work under one
// hold is bounded; builds with a work meter check this.
class DriveLock {
 public:
  void lock() {
    const auto ticket = drawn_.fetch_add(1);
    if (serving_.load() != ticket) wait(ticket);
    work::begin(kHold);
  }
  bool try_lock() {
    auto ticket = serving_.load();
    if (!drawn_.compare_exchange_strong(ticket, ticket + 1)) return false;
    work::begin(kHold);
    return true;
  }
  void unlock() {
    STP_ASSERT(drawn_.load() != serving_.load(), "who lets go of the drive lock holds it");
    work::end();
    const auto next = serving_.load(std::memory_order_relaxed) + 1;
    // Sequentially consistent, as is drawing a ticket: either a waiter sees that its turn has come,
    // or this thread sees that there is a waiter.
    serving_.store(next);
    if (drawn_.load() != next) call();
  }
  // Somebody waits in lock(): the poller should unlock and lock again.
  [[nodiscard]] bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr const char* kHold = "one hold of the drive lock";
  void wait(std::uint32_t ticket);
  void call();

  std::atomic<std::uint32_t> drawn_{0}, serving_{0};  // equal: the lock is free
  std::atomic<unsigned> waiting_{0};
  std::mutex mutex_;
  std::condition_variable called_;
};

}  // namespace stp::service
