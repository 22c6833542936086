// SPDX-License-Identifier: BSD-3-Clause
// Locks of which clang checks the use (-Wthread-safety): what a lock guards is marked as such, and
// so are functions that need it. Other compilers see plain locks. docs/architecture.md has the
// order of the locks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#ifdef __clang__
#define STP_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define STP_THREAD_SAFETY(attribute)
#endif
#define STP_GUARDED_BY(lock) STP_THREAD_SAFETY(guarded_by(lock))
#define STP_REQUIRES(lock) STP_THREAD_SAFETY(requires_capability(lock))
#define STP_EXCLUDES(lock) STP_THREAD_SAFETY(locks_excluded(lock))
#define STP_RETURNS_LOCK(lock) STP_THREAD_SAFETY(lock_returned(lock))

namespace stp {

// For the locks below.
template <typename Held, typename Call>
auto call_without(Held& lock, Call& call) {
  struct Again {
    Held& lock;
    ~Again() { lock.lock(); }
  };
  lock.unlock();
  const Again again{lock};
  return call();
}

class STP_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  bool try_lock() STP_THREAD_SAFETY(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void unlock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  // For clang, where it cannot see it: the caller holds this.
  void is_held() const STP_THREAD_SAFETY(assert_capability(this)) {}

 private:
  friend class Lock;
  std::mutex mutex_;
};

// Holds a Mutex while it exists, but for the time of a wait, or from unlock() to lock(). A wait may
// end without a reason, so it is repeated until what is waited for is true.
class STP_THREAD_SAFETY(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : lock_(of.mutex_) {}
  // The caller holds it already, and leaves it to this.
  Lock(Mutex& of, std::adopt_lock_t held) STP_REQUIRES(of) : lock_(of.mutex_, held) {}
  ~Lock() STP_THREAD_SAFETY(release_capability()) = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() STP_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }
  void unlock() STP_THREAD_SAFETY(release_capability()) { lock_.unlock(); }

  // Calls it without the lock, also in a function that is handed this by who holds it.
  template <typename Call>
  auto without(Call call) {
    return call_without(lock_, call);
  }

  void wait(std::condition_variable& called) { called.wait(lock_); }
  // False: it is too late.
  bool wait_until(std::condition_variable& called, std::chrono::steady_clock::time_point end) {
    return called.wait_until(lock_, end) == std::cv_status::no_timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

// May be locked again by the thread that holds it.
class STP_THREAD_SAFETY(capability("mutex")) RecursiveMutex {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

// As Lock, for mutexes of other kinds.
template <typename Kind>
class STP_THREAD_SAFETY(scoped_lockable) LockOf {
 public:
  explicit LockOf(Kind& of) STP_THREAD_SAFETY(acquire_capability(of)) : lock_(of) {}
  ~LockOf() STP_THREAD_SAFETY(release_capability()) = default;
  LockOf(const LockOf&) = delete;
  LockOf& operator=(const LockOf&) = delete;

  void lock() STP_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }
  void unlock() STP_THREAD_SAFETY(release_capability()) { lock_.unlock(); }
  template <typename Call>
  auto without(Call call) {
    return call_without(lock_, call);
  }
  void wait(std::condition_variable_any& called) { called.wait(lock_); }

 private:
  std::unique_lock<Kind> lock_;
};

using RecursiveLock = LockOf<RecursiveMutex>;

// Many may hold it to read what it guards, or one to change it.
class STP_THREAD_SAFETY(capability("mutex")) SharedMutex {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  void lock_shared() STP_THREAD_SAFETY(acquire_shared_capability()) { mutex_.lock_shared(); }
  void unlock_shared() STP_THREAD_SAFETY(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class STP_THREAD_SAFETY(scoped_lockable) WriteLock {
 public:
  explicit WriteLock(SharedMutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : of_(of) {
    of.lock();
  }
  ~WriteLock() STP_THREAD_SAFETY(release_capability()) { of_.unlock(); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  SharedMutex& of_;
};

class STP_THREAD_SAFETY(scoped_lockable) ReadLock {
 public:
  explicit ReadLock(SharedMutex& of) STP_THREAD_SAFETY(acquire_shared_capability(of)) : of_(of) {
    of.lock_shared();
  }
  ~ReadLock() STP_THREAD_SAFETY(release_capability()) { of_.unlock_shared(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  SharedMutex& of_;
};

}  // namespace stp
