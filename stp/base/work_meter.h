// SPDX-License-Identifier: BSD-3-Clause
// Counts the work done in one go while others wait: in one turn of a Node, or while a lock is held.
// No user or peer may make that long, so there is a limit: code that exceeds it aborts with the
// place and the count. Compiled into debug and sanitizer builds, hence into tests, fuzzing and
// simulations; other builds contain nothing of it.
//
// How to use it:
// - Code that must limit its work opens a Hold:
//     work::Hold const hold("a turn");            // until the end of the scope, on this thread
//   Of nested Holds the innermost counts. Each call of a Node is one unless there is one already.
// - A loop whose length an outside party decides counts its rounds, before or in it:
//     work::count("blocks of a Transfer", blocks);
//   So do a search through a table, and each step of an allocation that grows with its size.
// - A test reads the cost of an action: work::counted() in a Hold.
// Work outside every Hold is not counted.
//
// The limit: one operation is a round of a loop, some nanoseconds. A turn of a link receives at
// most 3 x 128 frames (from the link twice, if a timer is due, and those to itself) and sends 128.
// With 64 operations for each that makes 32,768. As much again is for other work: slices of ended
// Transfers (1,024), timers (128 connections and their Blocks), one mapping of 2^24 Bufx (16,384
// pages of them).
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
  const char* what = nullptr;  // name of the Hold that counts; nullptr: none
  std::uint64_t operations = 0, bound = 0;
};

inline Meter& meter() {
  thread_local Meter of_thread;
  return of_thread;
}

// `place`: names the counted work in the message.
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

// A Hold, unless there is one already: for calls that run alone or as part of more work.
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

// For callers that cannot use a scope.
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
  ~Hold() {}  // not trivial, so that the compiler does not call a Hold unused
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
