// SPDX-License-Identifier: BSD-3-Clause
// Sends the files and directories of stp-send's command line.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/files/channel.h"
#include "tools/files/progress.h"

namespace stp::files {

struct Sending {
  std::vector<std::string> paths;  // "-": standard input
  std::string destination;
  bool trees = false;     // directories with all that they hold
  bool checksum = false;  // what the receiver has is the same only if its content is
  std::vector<std::string> exclude;
  std::string stream_name = "stdin";   // of what comes from standard input
  std::uint64_t bytes_per_second = 0;  // 0: no limit
  std::chrono::seconds retry{0};       // for so long without progress a lost link is tried again
  Duration connect_timeout = Channel::kConnectPatience;  // for the receiver to accept
};

// Returns the number of files that did not arrive; it has reported each. Throws LinkFailure,
// Stopped.
std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress);

}  // namespace stp::files
