// SPDX-License-Identifier: BSD-3-Clause
// Threads for work on memory that a user shares with the daemon: mapping, unmapping, sealing,
// looking for missing pages. How long that takes depends on what the user does to the same file at
// that time: it may hold the file's locks for seconds, again and again. So each user has a few
// threads, which serve nobody else, and the work of one user never delays that of another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace stp::service {

class UserWorkers {
 public:
  using Work = std::function<void()>;
  // Limits: threads that work for one user, and for all users that are not trusted. As many again
  // as for one user are left for root and the daemon's own user. Threads are started on demand.
  static constexpr unsigned kThreadsPerUser = 2, kThreads = 32;
  // A user with this much work waiting gets no more done.
  static constexpr std::size_t kMostPerUser = 256;

  UserWorkers();
  // Waits up to kFarewell for the threads, and abandons those that still work.
  ~UserWorkers();
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // Never blocks. Work of one user begins in the order in which it was given. It throws nothing.
  void give(uid_t user, Work work);
  // Wraps `thing`: when the last copy of the result is destroyed, a thread of `workers` releases
  // it. The copies keep the workers alive.
  static std::shared_ptr<void> guard(std::shared_ptr<UserWorkers> workers, uid_t user,
                                     std::shared_ptr<void> thing);
  // Too much work of this user waits. What must be done may be given all the same.
  [[nodiscard]] bool is_stuck(uid_t user) const;
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
