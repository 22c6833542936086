// SPDX-License-Identifier: BSD-3-Clause
// What a program may sleep on: readable when the link has events, for whomever they are, or when
// the object has got one from another thread's call. Made when it is first asked for, since a
// link's queue with a descriptor costs a system call for each event.
#pragma once

#include <chrono>

namespace stp::fi {

using Clock = std::chrono::steady_clock;

// Milliseconds, negative: for ever.
[[nodiscard]] Clock::time_point deadline_in(int timeout);

class Wait {
 public:
  Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();
  // `queue`: descriptor of the link's queue. 0 or a negative errno; once.
  int open(int queue);
  [[nodiscard]] bool is_open() const { return epoll_ >= 0; }
  [[nodiscard]] int fd() const { return epoll_; }
  void wake();
  // Nothing is there any more.
  void clear();
  // False: the deadline has passed, or a signal came.
  [[nodiscard]] bool sleep(Clock::time_point deadline) const;

 private:
  int epoll_ = -1, event_ = -1;
  bool awake_ = false;
};

}  // namespace stp::fi
