// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/process_limits.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "libst/os/file_limit.h"

namespace stp::service {
namespace {

// Reserved for the process: stacks, the heap's arenas, what DPDK maps later.
constexpr std::uint64_t kOwnMappings = 2'048;
// Reserved for descriptors that are attached to requests, and for a few files of the process. Fewer
// where few files may be open at all.
constexpr std::uint64_t kOwnFiles = 64, kOwnPart = 16;
// The kernel's default, for systems where vm.max_map_count cannot be read.
constexpr std::uint64_t kUsualMappings = 65'530;

std::uint64_t left(std::uint64_t most, std::uint64_t taken) {
  return most - std::min(most, taken);
}

}  // namespace

std::uint64_t most_mappings() {
  std::uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most == 0 ? kUsualMappings : most;
}

std::uint64_t free_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t now = 0;
  for (std::string line; std::getline(maps, line);) ++now;
  return left(most_mappings(), now + kOwnMappings);
}

std::uint64_t free_files() {
  std::error_code ignored;
  std::filesystem::directory_iterator const files("/proc/self/fd", ignored);
  const auto now = ignored ? 0 : std::distance(begin(files), end(files));
  const auto most = static_cast<std::uint64_t>(first_reserved_file());
  return left(most, static_cast<std::uint64_t>(now) + std::min(kOwnFiles, most / kOwnPart));
}

}  // namespace stp::service
