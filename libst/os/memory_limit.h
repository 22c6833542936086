// SPDX-License-Identifier: BSD-3-Clause
// How much memory this process may have: what the machine has, or less where a control group limits
// it, as containers and units of systemd do. Beyond that the kernel ends processes of the group.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace stp::os {

inline std::uint64_t memory_of_machine() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages <= 0 || size <= 0
             ? 1
             : static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
}

// The least that a file of that name says in the folder of a group, or of one above it. In a
// container the folder of the group may be mounted in the place of the one above all.
inline std::uint64_t least_limit(const std::string& mount, std::string group,
                                 const std::string& name) {
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (;; group.erase(std::min(group.rfind('/'), group.size()))) {
    if (group == "/") group.clear();
    std::uint64_t limit = 0;
    // "max" is none, and with 0 no program runs, or it is slowed down only (memory.high).
    if (std::ifstream(mount + group + "/" + name) >> limit && limit != 0)
      least = std::min(least, limit);
    if (group.empty()) return least;
  }
}

// Where control groups are mounted below `folder`. `groups`: those of a process, as
// /proc/self/cgroup has them: "0::/system.slice/stpd.service" of the second version, and of the
// first one "4:memory:/docker/1234". No limit: the largest number.
inline std::uint64_t limit_of_groups(std::istream& groups, const std::string& folder) {
  auto least = std::numeric_limits<std::uint64_t>::max();
  std::string line;
  while (std::getline(groups, line)) {
    std::istringstream in(line);
    std::string number, controllers, group;
    std::getline(in, number, ':');
    std::getline(in, controllers, ':');
    std::getline(in, group);
    if (!group.starts_with('/')) continue;
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, least_limit(folder + "/memory", group, "memory.limit_in_bytes"));
    if (!controllers.empty()) continue;
    for (const auto* const name : {"memory.max", "memory.high"})
      least = std::min(least, least_limit(folder, group, name));
  }
  return least;
}

inline std::uint64_t memory_to_be_had() {
  std::ifstream groups("/proc/self/cgroup");
  return std::min(memory_of_machine(), limit_of_groups(groups, "/sys/fs/cgroup"));
}

}  // namespace stp::os
