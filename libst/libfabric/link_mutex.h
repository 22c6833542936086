// SPDX-License-Identifier: BSD-3-Clause
// The mutex that all objects of a fabric share.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <functional>
#include <utility>

#include "libst/os/futex.h"
#include "stp/base/mutex.h"

namespace stp::fi {

// The mutex of a link. A thread that polls lets those go first that wait for it. Otherwise it would
// have the mutex again before they are awake, again and again. If it sleeps in its poll, those wake
// it that do not poll themselves.
class STP_THREAD_SAFETY(capability("mutex")) LinkMutex {
 public:
  // `rouse` makes the sleep in rest_unless_awaited() end.
  explicit LinkMutex(std::function<void()> rouse = {}) : rouse_(std::move(rouse)) {}

  void lock() STP_THREAD_SAFETY(acquire_capability()) {
    if (!mutex_.lock_at_once() && !lock_soon()) wait_and_lock(true);
  }
  // Of a thread that polls: if others wait, after one of them has had the mutex.
  void lock_to_poll() STP_THREAD_SAFETY(acquire_capability()) {
    if (is_awaited()) let_go_first();
    if (!mutex_.lock_at_once() && !lock_soon()) wait_and_lock(false);
  }
  // Sleeps with the mutex, until what the sleep waits for has come or somebody else has to go on.
  template <class Sleep>
  void rest_unless_awaited(Sleep sleep) {
    rests_.store(true);  // before the line below: who waits sees this, or is seen there
    if (!is_awaited()) sleep();
    rests_.store(false);
  }
  void unlock() STP_THREAD_SAFETY(release_capability()) {
    mutex_.unlock();
    if (is_awaited()) wake_one();
  }
  // For clang, where it cannot see it: the caller holds this.
  void is_held() const STP_THREAD_SAFETY(assert_capability(this)) {}
  void check_order() const { mutex_.check_order(); }
  [[nodiscard]] bool is_awaited() const { return waiting_.load() != 0; }

 private:
  // Most holders keep it for less than a microsecond, and a sleep costs several. True: it is
  // locked.
  [[gnu::noinline]] bool lock_soon() STP_THREAD_SAFETY(try_acquire_capability(true)) {
    constexpr int kLooks = 32, kBetweenLooks = 4;
    for (int i = 0; i < kLooks && !rests_.load(std::memory_order_relaxed); ++i) {
      for (int k = 0; k < kBetweenLooks; ++k) relax();
      if (mutex_.lock_at_once()) return true;
    }
    return false;
  }
  static void relax() {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  // Sleeps without a yield before: that may give the whole slice away, where the cores have other
  // work.
  [[gnu::noinline]] void wait_and_lock(bool rouses) STP_THREAD_SAFETY(acquire_capability()) {
    waiting_.fetch_add(1);
    if (rouses && rests_.load() && rests_.exchange(false) && rouse_) rouse_();
    for (;;) {
      const auto seen = frees_.load();
      waking_.store(false);  // after the line above: who does not wake this has not freed it since
      if (mutex_.lock_at_once()) break;
      os::futex_wait(frees_, seen);
    }
    waiting_.fetch_sub(1);
    turns_.fetch_add(1);  // after the line above: who sees this turn does not wait for it
    if (polls_waiting_.load() != 0) os::futex_wake(turns_, INT_MAX);
  }
  // Unless one is awake that has not tried yet.
  [[gnu::noinline]] void wake_one() {
    if (waking_.exchange(true)) return;
    frees_.fetch_add(1);
    os::futex_wake(frees_, 1);
  }
  [[gnu::noinline]] void let_go_first() {
    polls_waiting_.fetch_add(1);
    const auto turn = turns_.load();
    while (is_awaited() && turns_.load() == turn) os::futex_wait(turns_, turn);
    polls_waiting_.fetch_sub(1);
  }

  Mutex mutex_{LockRank::kIa};                        // nobody waits there
  std::atomic<std::uint32_t> waiting_{0}, frees_{0};  // threads; calls of them
  std::atomic<std::uint32_t> polls_waiting_{0}, turns_{0};
  std::atomic<bool> waking_{false}, rests_{false};
  const std::function<void()> rouse_;
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
