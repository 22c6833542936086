// SPDX-License-Identifier: BSD-3-Clause
// Counts what is done in one go, while others wait: in one turn of a Node, in one hold of a lock.
// Nothing that a user or a peer does may make that long, so there is a bound, and whoever passes it
// is ended, with the place and the count. Built into debug and sanitizer builds, hence into tests,
// fuzzing and simulations; nothing of it is left in others.
//
// How to use it:
// - Whoever must not do too much at once says so:
//     work::Hold const hold("a turn");            // until the end of the scope, on this thread
//   Of nested ones the innermost counts. Each call of a Node is one where there is no other.
// - A loop whose length somebody else decides counts its rounds, before or in it:
//     work::count("blocks of a Transfer", blocks);
//   and so do a look through a table, and each step of an allocation that grows with its size.
// - A test asks what something cost: work::counted() in a Hold.
// What is done outside of every Hold is not counted.
//
// The bound: one operation is a round of a loop, some nanoseconds. A turn of a link receives at
// most 3 x 128 frames (from the link twice, where a timer is due, and those to itself) and sends
// 128. With 64 operations for each that makes 32,768. As much again is for what is done besides:
// slices of what has ended (1,024), timers (128 connections and their Blocks), one mapping of 2^24
// Bufx (16,384 pages of them).
#pragma once

#include <cstdint>

#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STP_WORK_METER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STP_WORK_METER 1
#endif
#endif

#ifdef STP_WORK_METER
#include <cstdio>
#include <cstdlib>
#endif

namespace stp::work {

inline constexpr std::uint64_t kBound = 65'536;

#ifdef STP_WORK_METER

inline constexpr bool kMetered = true;

struct Meter {
  const char* what = nullptr;  // of the Hold that counts; nullptr: there is none
  std::uint64_t operations = 0, bound = 0;
};

inline Meter& meter() {
  thread_local Meter of_thread;
  return of_thread;
}

// `place`: what is counted, for the message.
inline void count(const char* place, std::uint64_t operations = 1) {
  auto& m = meter();
  if (m.what == nullptr || (m.operations += operations) <= m.bound) return;
  std::fprintf(stderr, "%s does too much: %llu operations, the last %llu of them for: %s\n", m.what,
               static_cast<unsigned long long>(m.operations),
               static_cast<unsigned long long>(operations), place);
  std::abort();
}

// Since the innermost Hold began.
inline std::uint64_t counted() {
  return meter().operations;
}

class Hold {
 public:
  explicit Hold(const char* what, std::uint64_t bound = kBound) : before_(meter()) {
    meter() = {what, 0, bound};
  }
  ~Hold() { meter() = before_; }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Meter before_;
};

// A Hold where there is none yet: what can be done by itself, or as a part of more.
class Call {
 public:
  explicit Call(const char* what) : outermost_(meter().what == nullptr) {
    if (outermost_) meter() = {what, 0, kBound};
  }
  ~Call() {
    if (outermost_) meter() = {};
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  bool outermost_;
};

// For those who cannot have a scope.
inline void begin(const char* what) {
  meter() = {what, 0, kBound};
}
inline void end() {
  meter() = {};
}

#else

inline constexpr bool kMetered = false;
inline void count(const char*, std::uint64_t = 1) {}
inline std::uint64_t counted() {
  return 0;
}
class Hold {
 public:
  explicit Hold(const char*, std::uint64_t = kBound) {}
  ~Hold() {}  // not trivial: one that only stands there is not unused
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};
class Call {
 public:
  explicit Call(const char*) {}
  ~Call() {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};
inline void begin(const char*) {}
inline void end() {}

#endif

}  // namespace stp::work
