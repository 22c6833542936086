// SPDX-License-Identifier: BSD-3-Clause
// Sockets whose messages take long. The kernel wakes whoever waits for a socket in the thread that
// sends to it or closes it, and a program can wait for its own a million times (epoll). So the time
// that takes is measured, and charged to the user of the program: one who costs too much is served
// no more until a hundred times as long has passed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

namespace stp::service {

class SlowSockets {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::nanoseconds;
  // A call that took this long counts; it usually takes a twentieth of it. A user with so much of
  // it costs too much. One hundredth of the time that passes is forgiven.
  static constexpr std::chrono::microseconds kSlow{250};
  static constexpr std::chrono::milliseconds kMost{5};
  static constexpr int kForgiven = 100;

  // A reply took so much of this thread's time; `last`: what the one before it took on that socket.
  // Something else can make one call slow, but hardly two in a row, of one socket or of one user.
  // Returns true if the socket is served no more.
  bool replied(uid_t user, Time time, Time& last, Clock::time_point now = Clock::now());
  // A call for this user took so much of it. Root and the user of this process cost nothing.
  void took(uid_t user, Time time, Clock::time_point now = Clock::now());
  [[nodiscard]] bool costs_too_much(uid_t user, Clock::time_point now = Clock::now()) const;

 private:
  struct Cost {
    Time total{0};
    Clock::time_point when;
    [[nodiscard]] Time at(Clock::time_point now) const { return total - (now - when) / kForgiven; }
  };
  std::map<uid_t, Cost> costs_;  // only what is not forgiven
  std::map<uid_t, Time> slow_;   // the last reply of those for whom it was slow
};

// Processor time of this thread: what others run meanwhile does not count.
SlowSockets::Time time_of_thread();
// How much of it a call takes.
template <typename Call>
SlowSockets::Time time_of(Call&& call) {
  const auto began = time_of_thread();
  call();
  return time_of_thread() - began;
}

}  // namespace stp::service
