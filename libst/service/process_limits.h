// SPDX-License-Identifier: BSD-3-Clause
// What this process can still use of resources that the kernel limits per process.
#pragma once

#include <cstdint>

namespace stp::service {

// Memory mappings (vm.max_map_count) and open files (RLIMIT_NOFILE), minus those in use and a
// reserve for the process itself.
std::uint64_t free_mappings();
std::uint64_t free_files();
// All memory mappings that a process may have.
std::uint64_t most_mappings();

}  // namespace stp::service
