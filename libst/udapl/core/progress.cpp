// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/progress.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "stp/base/assert.h"

namespace stp::udapl {
namespace {

constexpr int kBatch = 64;

// Returns the microseconds left, rounded up, or -1 for ever.
std::int64_t left_until(Deadline deadline) {
  if (deadline == Deadline::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
  return std::max<std::int64_t>(left.count(), 0);
}

}  // namespace

void Progress::poll() {
  if (leader_ != nullptr) return;
  stm_event_t events[kBatch];
  for (;;) {
    const auto count = stm_queue_poll(queue_, events, kBatch);
    for (int i = 0; i < count; ++i) handler_(events[i]);
    if (count < kBatch) return;
  }
}

int Progress::wait(Lock& lock, Waiter& waiter, const std::function<bool()>& done,
                   Deadline deadline) {
  poll();
  if (done()) return 0;
  waiters_.push_back(&waiter);
  int result = 0;
  for (bool met = false; !met;) {
    if (left_until(deadline) == 0) {
      result = -ETIMEDOUT;
      break;
    }
    if (leader_ == nullptr) {
      leader_ = &waiter;
      result = lead(lock, deadline);
      STP_ASSERT(leader_ == &waiter, "who leads does so until it stops");
      leader_ = nullptr;
    } else {
      result = follow(lock, waiter, deadline);
    }
    met = done();
    if (met) result = 0;
    if (result == -EINTR) break;
    result = 0;
  }
  waiters_.remove(&waiter);
  if (leader_ == nullptr) hand_over();
  return result;
}

int Progress::lead(Lock& lock, Deadline deadline) {
  stm_event_t events[kBatch];
  lock.unlock();
  const auto count = stm_queue_wait(queue_, 1, events, kBatch, left_until(deadline));
  lock.lock();
  for (int i = 0; i < count; ++i) handler_(events[i]);
  return count == -EINTR ? -EINTR : 0;
}

int Progress::follow(Lock& lock, Waiter& waiter, Deadline deadline) {
  const auto seen = waiter.word.load(std::memory_order_relaxed);
  const auto left = left_until(deadline);
  timespec limit{left / 1'000'000, left % 1'000'000 * 1'000};
  lock.unlock();
  const auto result = ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&waiter.word),
                                FUTEX_WAIT_PRIVATE, seen, left < 0 ? nullptr : &limit, nullptr, 0);
  const auto interrupted = result != 0 && errno == EINTR;
  lock.lock();
  return interrupted ? -EINTR : 0;
}

void Progress::wake(Waiter& waiter) {
  waiter.word.fetch_add(1, std::memory_order_relaxed);
  // If the queue is full, it has events, and the leader wakes anyway.
  if (leader_ == &waiter)
    stm_queue_post(queue_, 0);
  else
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&waiter.word), FUTEX_WAKE_PRIVATE, 1,
              nullptr, nullptr, 0);
}

void Progress::wake_all() {
  for (auto* const waiter : waiters_) wake(*waiter);
}

void Progress::hand_over() {
  if (!waiters_.empty()) wake(*waiters_.front());
}

}  // namespace stp::udapl
