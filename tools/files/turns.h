// SPDX-License-Identifier: BSD-3-Clause
// Long work that a receiver does for its senders, such as reading what is there of their files. It
// is done in short slices, for a few senders at a time, so that processors are left for others. The
// hosts that wait have a slice in turn, however many senders each has.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>

namespace stp::files {

class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  // Called between slices and while the work waits for one. Work ends when it returns false, or
  // throws.
  using Attend = std::function<bool()>;
  // Half of the processors, and one at least.
  static unsigned usual();

  explicit Turns(unsigned at_once = usual(), Clock::duration slice = std::chrono::milliseconds(20));

  class Work;

 private:
  struct Host {
    unsigned works = 0;
    std::uint64_t had = 0;  // number of its last slice
  };
  [[nodiscard]] const Work* next() const;

  const Clock::duration slice_;
  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  unsigned free_;
  std::uint64_t slices_ = 0;
  std::map<std::string, Host> hosts_;  // that have work
  std::list<const Work*> waiting_;     // in the order in which they came
};

// For whom work is done.
struct WorkFor {
  Turns& turns;
  std::string host;
  Turns::Attend attend;
};

class Turns::Work {
 public:
  explicit Work(const WorkFor& whom);  // which must outlive it
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  // Before each piece of the work: waits for a slice if the last one is used up. A piece takes a
  // few milliseconds at most. False: the work ends.
  [[nodiscard]] bool go_on();

 private:
  friend class Turns;
  void stop();
  [[nodiscard]] bool await_slice();

  const WorkFor& whom_;
  Turns& turns_;
  Host* host_ = nullptr;
  bool has_slice_ = false;
  Clock::time_point began_;
};

}  // namespace stp::files
