// SPDX-License-Identifier: BSD-3-Clause
// One queue of the managed API feeds all EVDs of an IA. Of the threads that wait one leads: it
// sleeps in the queue and hands out what comes; the others sleep until it wakes them, and one of
// them leads when it goes. So events are handed out in their order, and a lone waiter has the
// managed API's latency.
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

  // Hands out what is there, unless a leader does. Under the lock.
  void poll();
  // Until done() (asked under the lock): 0, -ETIMEDOUT or -EINTR.
  int wait(Lock& lock, Waiter& waiter, const std::function<bool()>& done, Deadline deadline);
  // Makes `waiter` look again.
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
