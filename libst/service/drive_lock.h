// SPDX-License-Identifier: BSD-3-Clause
// Who may drive a Service. The one that polls holds it for as long as nobody else wants it, and
// looks at wanted() each turn: a request never waits longer than one turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace stp::service {

class DriveLock {
 public:
  void lock();
  bool try_lock();
  void unlock();
  // Somebody waits in lock(): the poller should unlock and lock again.
  [[nodiscard]] bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  bool held_ = false;
  unsigned next_ticket_ = 0, serving_ = 0;  // waiters go in the order they came
  std::atomic<unsigned> waiting_{0};
};

}  // namespace stp::service
