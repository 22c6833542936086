// SPDX-License-Identifier: BSD-3-Clause
// Where the system refuses memory. What somebody asks for fails then, and only that. What has to be
// written down all the same (queues of events, timers, lists of what is over) gets memory that the
// process has kept for that, if it keeps any (tools/stpd/memory_reserve.h).
#pragma once

#include <atomic>
#include <new>
#include <utility>

namespace stp {

// While it exists, this thread does what may be refused: it gets nothing of what is kept.
class Refusable {
 public:
  Refusable() { ++count_; }
  ~Refusable() { --count_; }
  Refusable(const Refusable&) = delete;
  Refusable& operator=(const Refusable&) = delete;

  [[nodiscard]] static bool here() { return count_ != 0; }

 private:
  friend class Needed;
  static inline thread_local constinit unsigned count_ = 0;
};

// While it exists, this thread writes down what it cannot take back any more, in the middle of what
// may be refused.
class Needed {
 public:
  Needed() : before_(std::exchange(Refusable::count_, 0)) {}
  ~Needed() { Refusable::count_ = before_; }
  Needed(const Needed&) = delete;
  Needed& operator=(const Needed&) = delete;

 private:
  const unsigned before_;
};

// What `work` returns, or `refused` if the system has no memory for it.
template <typename Work, typename Refused>
auto within_memory(Work&& work, Refused&& refused) -> decltype(work()) {
  try {
    const Refusable from_the_system;
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return std::forward<Refused>(refused)();
  }
}

// Much of what is kept is used: nobody new is let in.
inline std::atomic<bool> memory_is_scarce{false};

}  // namespace stp
