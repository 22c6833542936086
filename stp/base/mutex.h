// SPDX-License-Identifier: BSD-3-Clause
// Locks of which clang checks the use (-Wthread-safety): what a lock guards is marked as such, and
// so are functions that need it. Other compilers see plain locks. Builds with a work meter also
// check the order in which a thread takes them, and abort at once where two threads could wait for
// each other one day.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

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

// The order of all locks. Who holds one takes only those further down: an attempt to take one above
// it aborts where that is checked. A row: the name; who may hold several of it, which is any thread
// (Any), none (Nobody), or one that holds a lock of the row named; and what they are. The last row
// is every lock that is made without a rank: who holds one of these takes no other.
#define STP_LOCK_RANKS(X)                                                \
  X(Registry, Any, "the registry of IAs, while it loads a provider")     \
  X(Ia, Nobody, "an IA, or a link of libfabric")                         \
  X(Control, Nobody, "a domain's control lock")                          \
  X(Gate, Nobody, "the gate of all domains")                             \
  X(Domain, Gate, "a domain")                                            \
  X(Pages, Nobody, "the shared pages")                                   \
  X(Links, Nobody, "the links of a program")                             \
  X(Opening, Nobody, "a connectionless endpoint whose Port is opened")   \
  X(Endpoint, Nobody, "an endpoint")                                     \
  X(Stpd, Nobody, "the connection to stpd")                              \
  X(Eal, Nobody, "the start of EAL")                                     \
  X(Telemetry, Nobody, "the sources of telemetry")                       \
  X(Drive, Nobody, "the drive lock of a Service")                        \
  X(Rings, Nobody, "the list of rings for pinned pages")                 \
  X(Ring, Nobody, "one of these rings")                                  \
  X(Listeners, Any, "the listeners of memifs, while one begins or ends") \
  X(Listener, Nobody, "one of these listeners")                          \
  X(Other, Nobody, "any other: the budgets, the turn to map files, ...")

enum class LockRank : std::uint8_t {
#define STP_LOCK_RANK(Name, ...) k##Name,
  STP_LOCK_RANKS(STP_LOCK_RANK)
#undef STP_LOCK_RANK
      kAny,
  kNobody
};

// The place of a lock in that order, and what each thread holds. Takes no memory and no time where
// the order is not checked. Each library counts its own locks.
class LockOrder {
 public:
#ifdef STP_WORK_METER
  constexpr explicit LockOrder(LockRank rank) : rank_(rank) {}
  // This thread is about to wait for the lock.
  LockOrder take() const {
    for (auto below = row() + 1; below < kRows.size(); ++below)
      if (held_[below] != 0) violated(below);
    const auto several = kRows[row()].several;
    if (held_[row()] != 0 && several != LockRank::kAny &&
        (several == LockRank::kNobody || held_[static_cast<std::size_t>(several)] == 0))
      violated(row());
    return taken();
  }
  // It has the lock, and has not waited for it.
  LockOrder taken() const {
    ++held_[row()];
    return *this;
  }
  void leave() const {
    STP_ASSERT(held_[row()] != 0, "who leaves a lock holds it");
    --held_[row()];
  }

 private:
  struct Row {
    LockRank several;
    const char* words;
  };
  static constexpr auto kRows = std::to_array<Row>({
#define STP_LOCK_RANK(Name, several, words) {LockRank::k##several, words},
      STP_LOCK_RANKS(STP_LOCK_RANK)
#undef STP_LOCK_RANK
  });
  [[nodiscard]] constexpr std::size_t row() const {
    return static_cast<std::size_t>(rank_);
  }
  [[noreturn, gnu::cold, gnu::noinline]] void violated(std::size_t held) const {
    std::fprintf(stderr, "order of locks violated: takes '%s' while it holds '%s'. The order:\n",
                 kRows[row()].words, kRows[held].words);
    for (const auto& each : kRows) std::fprintf(stderr, "  %s\n", each.words);
    std::abort();
  }
  static inline thread_local constinit std::array<std::uint32_t, kRows.size()> held_{};

  LockRank rank_;
#else
  constexpr explicit LockOrder(LockRank) {}
  LockOrder take() const {
    return *this;
  }
  LockOrder taken() const {
    return *this;
  }
  void leave() const {}
#endif
};

// For the locks below.
template <typename Held, typename Call>
STP_THREAD_SAFETY(no_thread_safety_analysis)
auto call_without(Held& lock, Call& call) {
  struct Again {
    Held& lock;
    ~Again() STP_THREAD_SAFETY(no_thread_safety_analysis) { lock.lock(); }
  };
  lock.unlock();
  const Again again{lock};
  return call();
}

// Nobody in the way: taking it and letting go of it are one atomic operation each.
class STP_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  constexpr Mutex() : Mutex(LockRank::kOther) {}
  constexpr explicit Mutex(LockRank rank) : order_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() STP_THREAD_SAFETY(acquire_capability()) {
    order_.take();
    if (!take_free()) wait();
  }
  bool try_lock() STP_THREAD_SAFETY(try_acquire_capability(true)) {
    const bool locked = take_free();
    if (locked) order_.taken();
    return locked;
  }
  void unlock() STP_THREAD_SAFETY(release_capability()) {
    order_.leave();
    if (state_.exchange(State::kFree) == State::kWanted) call();
  }
  // For clang, where it cannot see it: the caller holds this.
  void is_held() const STP_THREAD_SAFETY(assert_capability(this)) {}
  // Its holder is about to let go of it, to sleep, and to take it again: whether it may.
  void check_order() const {
    order_.leave();
    order_.take();
  }

 private:
  // kWanted: held, and others may wait.
  enum class State : std::uint32_t { kFree, kHeld, kWanted };

  bool take_free() {
    auto free = State::kFree;
    return state_.compare_exchange_strong(free, State::kHeld, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  // Who has waited does not know whether others do, so it says that they may.
  [[gnu::cold, gnu::noinline]] void wait() {
    while (state_.exchange(State::kWanted, std::memory_order_acquire) != State::kFree)
      state_.wait(State::kWanted, std::memory_order_relaxed);
  }
  [[gnu::cold, gnu::noinline]] void call() { state_.notify_one(); }

  std::atomic<State> state_{State::kFree};
  [[no_unique_address]] LockOrder order_;
};

// Holds a Mutex while it exists, but for the time of a wait, or from unlock() to lock(). A wait may
// end without a reason, so it is repeated until what is waited for is true.
class STP_THREAD_SAFETY(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : of_(of) { of_.lock(); }
  // The caller holds it already, and leaves it to this.
  Lock(Mutex& of, std::adopt_lock_t) STP_REQUIRES(of) : of_(of) {}
  ~Lock() STP_THREAD_SAFETY(release_capability()) {
    if (holds_) of_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() STP_THREAD_SAFETY(acquire_capability()) STP_THREAD_SAFETY(no_thread_safety_analysis) {
    of_.lock();
    holds_ = true;
  }
  void unlock() STP_THREAD_SAFETY(release_capability())
      STP_THREAD_SAFETY(no_thread_safety_analysis) {
    holds_ = false;
    of_.unlock();
  }

  // Calls it without the lock, also in a function that is handed this by who holds it.
  template <typename Call>
  auto without(Call call) {
    return call_without(*this, call);
  }

  void wait(std::condition_variable_any& called) {
    of_.check_order();
    called.wait(*this);
  }
  // False: it is too late.
  bool wait_until(std::condition_variable_any& called, std::chrono::steady_clock::time_point end) {
    of_.check_order();
    return called.wait_until(*this, end) == std::cv_status::no_timeout;
  }

 private:
  Mutex& of_;
  bool holds_ = true;
};

// May be locked again by the thread that holds it.
class STP_THREAD_SAFETY(capability("mutex")) RecursiveMutex {
 public:
  explicit RecursiveMutex(LockRank rank) : order_(rank) {}

  void lock() STP_THREAD_SAFETY(acquire_capability()) {
    order_.take();
    mutex_.lock();
  }
  void unlock() STP_THREAD_SAFETY(release_capability()) {
    order_.leave();
    mutex_.unlock();
  }

 private:
  std::recursive_mutex mutex_;
  [[no_unique_address]] LockOrder order_;
};

// As Lock, for mutexes of other kinds. Of those that are waited with, check_order() is as Mutex's.
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
  void wait(std::condition_variable_any& called) {
    lock_.mutex()->check_order();
    called.wait(lock_);
  }

 private:
  std::unique_lock<Kind> lock_;
};

using RecursiveLock = LockOf<RecursiveMutex>;

// Many may hold it to read what it guards, or one to change it.
class STP_THREAD_SAFETY(capability("mutex")) SharedMutex {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) {
    order_.take();
    mutex_.lock();
  }
  void unlock() STP_THREAD_SAFETY(release_capability()) {
    order_.leave();
    mutex_.unlock();
  }
  void lock_shared() STP_THREAD_SAFETY(acquire_shared_capability()) {
    order_.take();
    mutex_.lock_shared();
  }
  void unlock_shared() STP_THREAD_SAFETY(release_shared_capability()) {
    order_.leave();
    mutex_.unlock_shared();
  }

 private:
  std::shared_mutex mutex_;
  [[no_unique_address]] LockOrder order_{LockRank::kOther};
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
