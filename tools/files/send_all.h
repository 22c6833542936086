// SPDX-License-Identifier: BSD-3-Clause
// Sends the files and directories of stp-send's command line.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/files/channel.h"
#include "tools/files/metadata.h"
#include "tools/files/progress.h"
#include "tools/files/tree.h"

namespace stp::files {

struct Sending {
  std::vector<std::string> paths;  // "-": standard input
  std::string destination;
  bool trees = false;       // directories with all that they hold
  bool checksum = false;    // what the receiver has is the same only if its content is
  bool dry = false;         // only says what would be sent
  bool remove = false;      // what a tree does not have is removed at the receiver
  bool hard_links = false;  // further names of a file are sent as such, not as files
  bool verbose = false;     // a line for each file that is sent
  std::vector<FilterRule> rules;
  std::optional<std::vector<std::string>> listed;  // what of the only tree is sent
  std::string into;                                // directory below that of the receiver
  std::optional<ModeChanges> modes;
  // At the receiver: of standard input where that is sent, else of the only argument.
  std::optional<std::string> name;
  std::uint64_t bytes_per_second = 0;  // 0: no limit
  std::chrono::seconds retry{0};       // for so long without progress a lost link is tried again
  Duration connect_timeout = Channel::kConnectPatience;  // for the receiver to accept
};

// Returns the number of files that did not arrive; it has reported each. Throws LinkFailure and
// Stopped. `sending` has no conflicts, and no two names are the same (arguments.h).
std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress);

}  // namespace stp::files
