// SPDX-License-Identifier: BSD-3-Clause
// Locks of which clang checks the use (-Wthread-safety): what a lock guards is marked as such, and
// so are functions that need it. Other compilers see plain locks.
//
// The order of the locks of a service and a daemon: the drive lock of one Service
// (libst/host/service.h), then the list of rings for pinned pages, then one of these rings, then
// the budgets. Nobody takes a lock while it holds the budgets, the turn to map files
// (mapping_turn.h), or one that is not named here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define STP_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define STP_THREAD_SAFETY(attribute)
#endif
#define STP_GUARDED_BY(lock) STP_THREAD_SAFETY(guarded_by(lock))
#define STP_REQUIRES(lock) STP_THREAD_SAFETY(requires_capability(lock))
#define STP_EXCLUDES(lock) STP_THREAD_SAFETY(locks_excluded(lock))

namespace stp::os {

class STP_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }

 private:
  friend class Lock;
  std::mutex mutex_;
};

// Holds a Mutex while it exists, but for the time of a wait. A wait may end without a reason, so it
// is repeated until what is waited for is true.
class STP_THREAD_SAFETY(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : lock_(of.mutex_) {}
  ~Lock() STP_THREAD_SAFETY(release_capability()) = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void wait(std::condition_variable& called) { called.wait(lock_); }
  // False: it is too late.
  bool wait_until(std::condition_variable& called, std::chrono::steady_clock::time_point end) {
    return called.wait_until(lock_, end) == std::cv_status::no_timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace stp::os
