// SPDX-License-Identifier: BSD-3-Clause
// What stp-send does with the files and directories that it is given.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tools/files/progress.h"

namespace stp::files {

struct Sending {
  std::vector<std::string> paths;
  std::string destination;
  bool trees = false;  // directories with all that they hold
};

// The number of files that did not arrive; each was complained about. LinkFailure, Stopped.
std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress);

}  // namespace stp::files
