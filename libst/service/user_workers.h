// SPDX-License-Identifier: BSD-3-Clause
// Threads for work on memory that a user shares with the daemon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace stp::service {

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
