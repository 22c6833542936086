// SPDX-License-Identifier: BSD-3-Clause
// The mutex of a link. A thread that polls lets those go first that wait for it. Otherwise it would
// have the mutex again before they are awake, again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace stp::fi {

class LinkMutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1);
    mutex_.lock();
    waiting_.fetch_sub(1);
    turns_.fetch_add(1);  // after the line above: who sees this turn does not wait for it
    turns_.notify_all();
  }
  // Of a thread that polls: if others wait, after one of them has had the mutex.
  void lock_to_poll() {
    const auto turn = turns_.load();
    if (is_awaited()) turns_.wait(turn);
    lock();
  }
  void unlock() { mutex_.unlock(); }
  [[nodiscard]] bool is_awaited() const { return waiting_.load() != 0; }

 private:
  std::mutex mutex_;
  std::atomic<std::uint32_t> waiting_{0}, turns_{0};
};

using LinkLock = std::unique_lock<LinkMutex>;

// For a call that a program repeats until something has happened.
class PollLock {
 public:
  explicit PollLock(LinkMutex& mutex) : mutex_(mutex) { mutex_.lock_to_poll(); }
  ~PollLock() { mutex_.unlock(); }
  PollLock(const PollLock&) = delete;
  PollLock& operator=(const PollLock&) = delete;

 private:
  LinkMutex& mutex_;
};

}  // namespace stp::fi
