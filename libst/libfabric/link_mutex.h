// SPDX-License-Identifier: BSD-3-Clause
// The mutex that all objects of a fabric share.
#pragma once

#include <atomic>
#include <cstdint>

#include "stp/base/mutex.h"

namespace stp::fi {

// The mutex of a link. A thread that polls lets those go first that wait for it. Otherwise it would
// have the mutex again before they are awake, again and again.
class STP_THREAD_SAFETY(capability("mutex")) LinkMutex {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) {
    if (mutex_.lock_at_once()) return;
    waiting_.fetch_add(1);
    mutex_.lock();
    waiting_.fetch_sub(1);
    turns_.fetch_add(1);  // after the line above: who sees this turn does not wait for it
    turns_.notify_all();
  }
  // Of a thread that polls: if others wait, after one of them has had the mutex.
  void lock_to_poll() STP_THREAD_SAFETY(acquire_capability()) {
    if (is_awaited()) let_go_first();
    lock();
  }
  void unlock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  // For clang, where it cannot see it: the caller holds this.
  void is_held() const STP_THREAD_SAFETY(assert_capability(this)) {}
  void check_order() const { mutex_.check_order(); }
  [[nodiscard]] bool is_awaited() const { return waiting_.load() != 0; }

 private:
  [[gnu::noinline]] void let_go_first() {
    const auto turn = turns_.load();
    if (is_awaited()) turns_.wait(turn);
  }

  Mutex mutex_{LockRank::kIa};
  std::atomic<std::uint32_t> waiting_{0}, turns_{0};
};

using LinkLock = LockOf<LinkMutex>;

// For a call that a program repeats until something has happened.
class STP_THREAD_SAFETY(scoped_lockable) PollLock {
 public:
  explicit PollLock(LinkMutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : mutex_(of) {
    of.lock_to_poll();
  }
  ~PollLock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  PollLock(const PollLock&) = delete;
  PollLock& operator=(const PollLock&) = delete;

 private:
  LinkMutex& mutex_;
};

}  // namespace stp::fi
