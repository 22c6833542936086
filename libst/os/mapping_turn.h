// SPDX-License-Identifier: BSD-3-Clause
// The turn that threads take to map and unmap files on which other processes may work, and how long
// a thread has not run.
#pragma once

#include <chrono>
#include <ctime>

#include "stp/base/mutex.h"

namespace stp::os {

// How long this thread has not run since it made this.
class TimeOff {
 public:
  [[nodiscard]] std::chrono::nanoseconds so_far() const {
    return read(CLOCK_MONOTONIC) - read(CLOCK_THREAD_CPUTIME_ID) - began_;
  }

 private:
  static std::chrono::nanoseconds read(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  }
  const std::chrono::nanoseconds began_ = read(CLOCK_MONOTONIC) - read(CLOCK_THREAD_CPUTIME_ID);
};

// While the kernel maps or unmaps a file on which its owner works, as by taking away a page that is
// mapped very often, it may make the whole process wait that maps anything. So threads do that to
// files of programs one at a time. Then it is clear who is to blame for a wait: the owner of the
// file (UserWorkers).
class STP_THREAD_SAFETY(scoped_lockable) MappingTurn {
 public:
  // Waits for the other threads, which does not count.
  MappingTurn() STP_THREAD_SAFETY(acquire_capability(mutex())) : lock_(mutex()) {}
  ~MappingTurn() STP_THREAD_SAFETY(release_capability()) { time_off() += off_.so_far(); }
  MappingTurn(const MappingTurn&) = delete;
  MappingTurn& operator=(const MappingTurn&) = delete;

  // How long this thread has not run in its turns, and elsewhere waited for the owner of a file.
  // Whoever reads it sets it to zero.
  static std::chrono::nanoseconds& time_off() {
    thread_local std::chrono::nanoseconds total{0};
    return total;
  }

 private:
  static Mutex& mutex() {
    static auto* const all = new Mutex;  // never destroyed: workers may outlive main()
    return *all;
  }
  const Lock lock_;
  const TimeOff off_;
};

}  // namespace stp::os
