// SPDX-License-Identifier: BSD-3-Clause
// What DPDK is told when it starts: the lcore, hugepages, and the directory of its telemetry.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stp::port {

inline constexpr unsigned kDpdkCpus = 1024;  // DPDK knows no others

// DPDK's --lcores: one lcore, which may run on any CPU of the program. Threads that poll a link are
// not lcores.
struct Lcores {
  std::string list;      // "0@(0-3,6)"
  bool foreign = false;  // a CPU that the program may not use: DPDK knows none of the others
};

// `knows`: whether DPDK finds that CPU.
Lcores make_lcores(const std::vector<unsigned>& usable, const std::function<bool(unsigned)>& knows);

// Why DPDK knows none of these CPUs, and what to do about it.
std::string why_foreign(const std::vector<unsigned>& usable);

// As DPDK looks for it.
bool dpdk_knows_cpu(unsigned cpu);

// Whether DPDK may be told to use hugepages. It does not start without those that it has been
// promised, and cannot be started a second time.
struct HugepageChoice {
  bool use = false;
  std::string trouble;  // why those that are free are not used
};

// `root`: /sys/kernel/mm/hugepages. `trial`: whether a page of that many bytes can be had; 0 or an
// error number.
HugepageChoice choose_hugepages(const std::string& root,
                                const std::function<int(std::uint64_t bytes)>& trial);

// Takes one page as DPDK does, and gives it back.
int try_hugepage(std::uint64_t bytes);

// The directory of DPDK's telemetry socket. It stays behind when its process is killed or has
// dropped the right to remove it.

// DPDK's --file-prefix for a process: the name of its directory.
std::string file_prefix_of(pid_t pid);

// Removes from `parent` the directories of our ended processes. One that was changed within the
// last minute stays: a process of another pid namespace may be starting.
void remove_left_behind(const std::filesystem::path& parent);

}  // namespace stp::port
