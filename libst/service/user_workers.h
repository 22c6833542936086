// SPDX-License-Identifier: BSD-3-Clause
// Threads for work on memory that a user shares with the daemon, and the turn that they take to map
// it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>

namespace stp::service {

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
class MappingTurn {
 public:
  // Waits for the other threads, which does not count.
  MappingTurn() : lock_(mutex()) {}
  ~MappingTurn() { time_off() += off_.so_far(); }
  MappingTurn(const MappingTurn&) = delete;
  MappingTurn& operator=(const MappingTurn&) = delete;

  // How long this thread has not run in its turns, and elsewhere waited for the owner of a file.
  // Whoever reads it sets it to zero.
  static std::chrono::nanoseconds& time_off() {
    thread_local std::chrono::nanoseconds total{0};
    return total;
  }

 private:
  static std::mutex& mutex() {
    static auto* const all = new std::mutex;  // never destroyed: workers may outlive main()
    return *all;
  }
  const std::lock_guard<std::mutex> lock_;
  const TimeOff off_;
};

// Threads for work on memory that a user shares with the daemon: mapping, unmapping, sealing,
// looking for missing pages. How long that takes depends on what the user does to the same file at
// that time: it may hold the file's locks for seconds, again and again. So each user has a few
// threads, which serve nobody else, and the work of one user never delays that of another.
//
// One thing they cannot avoid: while they map and unmap such a file, the process may be unable to
// map anything. So a user in whose work a thread has slept long there gets no more
// done until a hundred times as long has passed.
class UserWorkers {
 public:
  using Work = std::function<void()>;
  using Clock = std::chrono::steady_clock;
  // Limits: threads that work for one user, and for all users that are not trusted. As many again
  // as for one user are left for root and the daemon's own user. Threads are started on demand.
  static constexpr unsigned kThreadsPerUser = 2, kThreads = 32;
  // A user with this much work waiting gets no more done. What is only released does not count: a
  // program that ends may have had thousands of regions.
  static constexpr std::size_t kMostPerUser = 256;
  // A sleep this long counts. A user with so much of it gets no more done. One hundredth of the
  // time that passes is forgiven.
  static constexpr std::chrono::milliseconds kLongSleep{50}, kMostSlept{1'000};
  static constexpr int kForgiven = 100;

  UserWorkers();
  // Waits up to kFarewell for the threads, and abandons those that still work.
  ~UserWorkers();
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // Never blocks. Work of one user begins in the order in which it was given. It throws nothing.
  enum class Kind { kAsked, kRelease };
  void give(uid_t user, Work work, Kind kind = Kind::kAsked);
  // Wraps `thing`: when the last copy of the result is destroyed, a thread of `workers` releases
  // it. The copies keep the workers alive.
  static std::shared_ptr<void> guard(std::shared_ptr<UserWorkers> workers, uid_t user,
                                     std::shared_ptr<void> thing);
  // Whether the work of this user has slept too long.
  [[nodiscard]] bool has_slept(uid_t user, Clock::time_point now = Clock::now()) const;
  // Too much work of this user waits, or has slept too long. What must be done may be given all the
  // same.
  [[nodiscard]] bool is_stuck(uid_t user, Clock::time_point now = Clock::now()) const;
  // Call now and then: makes threads that could not be made when they were needed.
  void tend();
  // Counts what was given and is not done yet, of one user.
  [[nodiscard]] std::size_t waiting(uid_t user) const;

  static constexpr std::chrono::milliseconds kFarewell{500};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // abandoned threads keep it alive
};

}  // namespace stp::service
