// SPDX-License-Identifier: BSD-3-Clause
// What a program sleeps on: readable when the link has events for any object, or when another
// thread's call has put an event into this object. Created on demand, because a descriptor on a
// link's queue costs a system call per event.
#pragma once

#include <chrono>

namespace stp::fi {

using Clock = std::chrono::steady_clock;

// In milliseconds; negative: never.
[[nodiscard]] Clock::time_point deadline_in(int timeout);

class Wait {
 public:
  Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();
  // `queue`: descriptor of the link's queue. Call once. Returns 0 or a negative errno.
  int open(int queue);
  [[nodiscard]] bool is_open() const { return epoll_ >= 0; }
  [[nodiscard]] int fd() const { return epoll_; }
  void wake();
  // The object has no events any more.
  void clear();
  // Returns false if the deadline has passed or a signal has arrived.
  [[nodiscard]] bool sleep(Clock::time_point deadline) const;

 private:
  int epoll_ = -1, event_ = -1;
  bool awake_ = false;
};

}  // namespace stp::fi
