// SPDX-License-Identifier: BSD-3-Clause
// The directory of DPDK's telemetry socket. It stays behind when its process is killed or has
// dropped the right to remove it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace stp::port {

// DPDK's --file-prefix for a process: the name of its directory.
std::string file_prefix_of(pid_t pid);

// Removes from `parent` the directories of our ended processes. One that was changed within the
// last minute stays: a process of another pid namespace may be starting.
void remove_left_behind(const std::filesystem::path& parent);

}  // namespace stp::port
