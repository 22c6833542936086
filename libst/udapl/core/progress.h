// SPDX-License-Identifier: BSD-3-Clause
// One queue of the managed API feeds all EVDs of an IA. One of the waiting threads leads: it sleeps
// in the queue and dispatches events. The others sleep until it wakes them, and one of them leads
// when it leaves. So events are dispatched in order, and a single waiter has the latency of the
// managed API.
#pragma once

#include <stp/managed.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>

namespace stp::udapl {

using Deadline = std::chrono::steady_clock::time_point;
using Lock = std::unique_lock<std::mutex>;

class Progress {
 public:
  using Handler = std::function<void(const stm_event_t&)>;
  struct Waiter {
    std::atomic<std::uint32_t> word{0};
  };

  explicit Progress(Handler handler) : handler_(std::move(handler)) {}
  void set_queue(stm_queue_t queue) { queue_ = queue; }
  [[nodiscard]] stm_queue_t queue() const { return queue_; }

  // Dispatches available events unless there is a leader. Under the lock.
  void poll();
  // Waits until done() returns true; calls it under the lock. Returns 0, -ETIMEDOUT or -EINTR.
  int wait(Lock& lock, Waiter& waiter, const std::function<bool()>& done, Deadline deadline);
  // Makes `waiter` check its condition again.
  void wake(Waiter& waiter);
  void wake_all();
  [[nodiscard]] bool idle() const { return waiters_.empty(); }

 private:
  int lead(Lock& lock, Deadline deadline);
  static int follow(Lock& lock, Waiter& waiter, Deadline deadline);
  void hand_over();

  const Handler handler_;
  stm_queue_t queue_ = nullptr;
  Waiter* leader_ = nullptr;
  std::list<Waiter*> waiters_;
};

}  // namespace stp::udapl
