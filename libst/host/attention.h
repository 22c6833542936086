// SPDX-License-Identifier: BSD-3-Clause
// When the thread that drives a Service is awake: how long it stays away, when it polls, and how
// often it looks for what cannot wake it.
#pragma once

#include <time.h>

#include <algorithm>

#include "libst/os/shared_core.h"
#include "stp/types.h"

namespace stp::host {

// Computes how long the background thread stays away from a Service that the program drives itself.
// Each look takes the program's core for some microseconds, so the interval doubles for as long as
// the program keeps coming. The cost: the thread returns that much later when the program stops
// driving the Service without calling it.
class Absence {
 public:
  static constexpr Time kLongest = 2 * kMillisecond;
  static constexpr Time kSooner = 5;  // divides the shortest interval

  explicit Absence(Time shortest) : shortest_(shortest), next_(shortest) {}

  // Call if the program has driven the Service since the last look. Returns the time until the next
  // look.
  Time prolong() {
    const auto now = next_;
    next_ = std::min(next_ * 2, kLongest);
    return now;
  }
  // Call if the program has not driven the Service since the last look. `soon`: it leaves incoming
  // frames to the thread, so the next interval is shorter.
  void end(bool soon = false) { next_ = soon ? shortest_ / kSooner : shortest_; }

 private:
  const Time shortest_;
  Time next_;
};

// Decides whether the background thread stays awake for a program that polls memory and makes no
// calls, as consumers of RDMA writes do. Such a program posts only answers to what it finds. Each
// frame buys a bounded time awake.
class Attention {
 public:
  enum class Rest {
    kYield,  // offer the core to other threads, then poll again
    kNap,    // sleep for kNap
    kSleep   // sleep as usual
  };

  // After a frame or a post the thread stays awake for kAwake if nobody else wants the core, then
  // naps until kNapping has passed.
  static constexpr Time kAwake = 200 * kMicrosecond, kNapping = 20 * kMillisecond;
  static constexpr Time kNap = 20 * kMicrosecond;
  // A program that posts more than kPostsPerFrame times per frame received is a sender: it looks
  // for its frames itself.
  static constexpr std::int64_t kPostsPerFrame = 4, kMostPosts = 64;

  // `may`: the program has called libst and does not sleep in a call, so it may be polling memory.
  void may_spin(bool may) {
    may_ = may;
    if (!may) end();
  }
  [[nodiscard]] bool possible() const { return may_; }
  // `frames`: how many the thread received. `posts`: how often the program has posted since the
  // last call.
  void turn(std::uint64_t frames, std::uint64_t posts, Time now) {
    if (!may_) return;
    on_ |= frames != 0;
    posts_left_ += static_cast<std::int64_t>(frames) * kPostsPerFrame;
    posts_left_ = std::min(posts_left_, kMostPosts) - static_cast<std::int64_t>(posts);
    if (posts_left_ < 0) return end();
    if (on_ && frames + posts != 0) active_ = now;
  }
  // Call after a yield that lasted from `begin` to `now`.
  void yielded(Time begin, Time now) { core_.yielded(begin, now); }
  void end() {
    on_ = false;
    posts_left_ = 0;
  }
  [[nodiscard]] bool on() const { return on_; }
  // What to do after a turn without work.
  [[nodiscard]] Rest rest(Time now) const {
    const auto idle = now - active_;
    if (!on_ || idle >= kNapping) return Rest::kSleep;
    return idle < kAwake && !core_.is_shared(now) ? Rest::kYield : Rest::kNap;
  }

 private:
  bool may_ = false, on_ = false;
  Time active_ = 0;
  os::SharedCore core_;
  std::int64_t posts_left_ = 0;
};

// How long a thread that yields its core in each idle turn polls before it sleeps. Where threads
// share cores, an answer takes as long as all of them need for their turns: two daemons and two
// programs on two cores 30 us and more. A thread that sleeps earlier is late for each answer.
// Where nothing comes soon, sleeping leaves the core to others. And where another thread does not
// give the core back, sleeping is the quicker way to it: the scheduler runs a thread that wakes.
class Patience {
 public:
  static constexpr Time kShortest = 20 * kMicrosecond, kLongest = 200 * kMicrosecond;
  // What comes within that time after the work before may be an answer.
  static constexpr Time kAnswer = 500 * kMicrosecond;
  // Who yields for longer sleeps at once for a while.
  static constexpr os::SharedCoreRule kGivenBackLate{.late_back = 500 * kMicrosecond};

  // Work has come that long after the work before.
  void work_came(Time after) {
    if (after > kAnswer)
      time_ = kShortest;
    else if (after > kShortest)
      time_ = kLongest;
  }
  // Call after a yield that lasted from `begin` to `now`.
  void yielded(Time begin, Time now) { core_.yielded(begin, now); }
  [[nodiscard]] Time time(Time now) const { return core_.is_shared(now) ? 0 : time_; }

 private:
  Time time_ = kShortest;
  os::SharedCore core_{kGivenBackLate};
};

// Limits how often a thread polls for something that cannot wake it, to a small share of a core.
// The cost of a look is mostly the kernel's timer and differs between machines by a factor of ten,
// so the class measures it.
class SleepBudget {
 public:
  // `shortest`, `longest`: bounds of pause(), whatever a look costs.
  SleepBudget(Time shortest, Time longest)
      : shortest_(shortest), longest_(longest), pause_(longest) {}

  // The thread had work: discards the current measurement.
  void restart() { looks_ = 0; }
  // The thread calls this each time it has slept, looked and found nothing.
  void looked() {
    if (looks_ == 0) spent_before_ = spent();
    if (looks_++ < kMeasured) return;
    set_cost((spent() - spent_before_) / kMeasured);
    looks_ = 0;
  }
  void set_cost(Time of_one_look) {
    pause_ = std::clamp(of_one_look * kLooksPerShare, shortest_, longest_);
  }
  [[nodiscard]] Time pause() const { return pause_; }

 private:
  static constexpr unsigned kMeasured = 64;   // looks per measurement: reading CPU time costs, too
  static constexpr Time kLooksPerShare = 60;  // 1/60, or 1.7 %, of a core

  static Time spent() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec);
  }

  const Time shortest_, longest_;
  Time pause_;
  Time spent_before_ = 0;
  unsigned looks_ = 0;
};

}  // namespace stp::host
