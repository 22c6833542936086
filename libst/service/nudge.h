// SPDX-License-Identifier: BSD-3-Clause
// Ends waits in system calls that have no timeout. Closing a foreign descriptor can block: a socket
// with SO_LINGER, for example, waits until its peer has taken what was sent. A signal ends such
// waits, so the Nudge sends one to its thread every millisecond.
#pragma once

#include <time.h>

namespace stp::service {

// Only the thread that constructs it may use it. Does nothing if the kernel provides no timer.
class Nudge {
 public:
  Nudge();
  ~Nudge();
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

  void start();
  void stop();

  // While it exists, interruptible system calls of this thread return after a millisecond at most.
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
