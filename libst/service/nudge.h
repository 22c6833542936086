// SPDX-License-Identifier: BSD-3-Clause
// Ends waits inside the kernel that a thread cannot know of beforehand. Letting go of somebody
// else's descriptor can make a thread wait: a socket with SO_LINGER, say, until its peer has taken
// what was sent. Such waits end when a signal comes, so one comes every millisecond.
#pragma once

#include <time.h>

namespace stp::service {

// For the thread that makes it, which alone may use it. Where the system has no timer to give, it
// does nothing.
class Nudge {
 public:
  Nudge();
  ~Nudge();
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

  void start();
  void stop();

  // While it lives, calls of this thread that wait come back early.
  class Span {
   public:
    explicit Span(Nudge& nudge) : nudge_(nudge) { nudge_.start(); }
    ~Span() { nudge_.stop(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Nudge& nudge_;
  };

 private:
  void set(long nanoseconds);
  timer_t timer_{};
  bool made_ = false;
};

}  // namespace stp::service
