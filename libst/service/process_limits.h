// SPDX-License-Identifier: BSD-3-Clause
// What this process can still have of what the kernel counts for a whole process.
#pragma once

#include <cstdint>

namespace stp::service {

// Mappings of its address space (vm.max_map_count), and open files (RLIMIT_NOFILE), less what it
// has now and a reserve for its own.
std::uint64_t free_mappings();
std::uint64_t free_files();

}  // namespace stp::service
