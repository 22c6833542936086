// SPDX-License-Identifier: BSD-3-Clause
// The turn that threads take to map and unmap files on which other processes may work, and how long
// a thread has not run.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
//
// Turns come in the order in which threads ask: one that takes many turns leaves room for others.
class MappingTurn {
 public:
  // Waits for the other threads, which does not count.
  MappingTurn() = default;
  ~MappingTurn() { time_off() += off_.so_far(); }
  MappingTurn(const MappingTurn&) = delete;
  MappingTurn& operator=(const MappingTurn&) = delete;

  // A turn of unmap_in_turns() that is shorter is not counted. Each may have to wait for other
  // threads, which map pages in without a turn, and one call takes thousands of turns.
  static constexpr std::chrono::milliseconds kOfOthers{50};

  // How long this thread has not run in its turns, and elsewhere waited for the owner of a file.
  // Whoever reads it sets it to zero.
  static std::chrono::nanoseconds& time_off() {
    thread_local std::chrono::nanoseconds total{0};
    return total;
  }

 private:
  struct Line {
    Mutex mutex;
    std::condition_variable_any moved;
    std::uint64_t asked STP_GUARDED_BY(mutex) = 0, ended STP_GUARDED_BY(mutex) = 0;
  };
  static Line& line() {
    static auto* const all = new Line;  // never destroyed: workers may outlive main()
    return *all;
  }
  // The first in the line while it exists.
  struct Place {
    Place() {
      auto& of = line();
      Lock lock(of.mutex);
      for (const auto mine = of.asked++; of.ended != mine;) lock.wait(of.moved);
    }
    ~Place() {
      auto& of = line();
      const Lock lock(of.mutex);
      ++of.ended;
      of.moved.notify_all();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
  };
  const Place place_;
  const TimeOff off_{};
};

// While pages of a process are mapped in or unmapped, it maps nothing. So not more than this at
// once: to map in a page takes the kernel ten times as long.
inline constexpr std::size_t kMappedInAtOnce = std::size_t{256} << 10;
inline constexpr std::size_t kUnmappedAtOnce = std::size_t{2} << 20;

// Calls each(at, size) for parts of the memory, one after the other, of `most` bytes each. False: a
// call has returned false, and was the last one.
template <typename Each>
bool in_parts(std::byte* at, std::size_t size, std::size_t most, Each&& each) {
  while (size != 0) {
    const auto part = std::min(size, most);
    if (!each(at, part)) return false;
    at += part;
    size -= part;
  }
  return true;
}

// munmap(), in turns that are short however much memory it is: gigabytes of pages take some tenths
// of a second. Only long turns count as time off.
inline void unmap_in_turns(std::byte* of, std::size_t all) {
  in_parts(of, all, kUnmappedAtOnce, [](std::byte* at, std::size_t size) {
    const auto before = MappingTurn::time_off();
    {
      const MappingTurn turn;
      ::munmap(at, size);
    }
    if (MappingTurn::time_off() - before < MappingTurn::kOfOthers) MappingTurn::time_off() = before;
    return true;
  });
}

}  // namespace stp::os
