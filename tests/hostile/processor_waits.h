// SPDX-License-Identifier: BSD-3-Clause
// How long threads have waited for a processor although they could run, as the kernel counts it
// (schedstat). On a busy machine that may be most of what a round trip takes, and nobody but the
// scheduler can shorten it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <vector>

#include "libst/os/unique_fd.h"

namespace stp::hostile {

// Whom the calling thread waits for: a process, and those of its threads that wait for each other,
// or for its other threads. 0: only for `threads`, of any process.
struct Servers {
  pid_t process = 0;
  std::vector<pid_t> threads;
};

class ProcessorWaits {
 public:
  using Duration = std::chrono::steady_clock::duration;
  // So far.
  struct Waits {
    Duration own{};      // of the calling thread
    Duration servers{};  // of all their `threads`
    // Of each other thread of the process, if they were asked for.
    std::map<pid_t, Duration> workers;
  };

  explicit ProcessorWaits(const Servers& servers);
  // Zero where the kernel does not count. With `workers` it takes longer.
  [[nodiscard]] Waits now(bool workers);
  // Until now: the calling thread, all threads of the servers, and that worker which has waited
  // longest.
  [[nodiscard]] Duration since(const Waits& before);
  // Of the calling thread.
  [[nodiscard]] Duration own() const;

 private:
  void find_workers();

  const Servers servers_;
  os::UniqueFd own_;
  std::vector<os::UniqueFd> files_;  // of the servers
  std::map<pid_t, os::UniqueFd> workers_;
};

}  // namespace stp::hostile
