// SPDX-License-Identifier: BSD-3-Clause
// Where DPDK keeps the telemetry socket of a process: a directory that outlives one that was
// killed, or that gave up the right to remove it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace stp::port {

// DPDK's --file-prefix for a process: the name of its directory.
std::string file_prefix_of(pid_t pid);

// Removes from `parent` what processes of ours that have ended left there.
void remove_left_behind(const std::filesystem::path& parent);

}  // namespace stp::port
