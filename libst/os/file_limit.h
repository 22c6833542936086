// SPDX-License-Identifier: BSD-3-Clause
// The limits of open files, of their length, and of mappings. A service needs more descriptors than
// the usual soft limit: some for each client, and one for each channel that was not handed out yet.
// For programs only: the library does not change the limits of its process.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>

namespace stp::os {

// Raises the soft limit to the hard limit. Returns how many files this process may have open now.
inline rlim_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

// Makes the kernel's table of this process's files as long as it can get. Call it before threads
// start: with threads, the call that first needs a longer table waits for all processors, and with
// it everybody whom that thread serves (120 ms were measured).
inline void make_room_for_files(rlim_t files) {
  constexpr rlim_t kMost = 1U << 20U;  // 8 MiB of the kernel's memory
  const int last =
      ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(std::min(files, kMost)) - 1);
  if (last >= 0) ::close(last);
}

// Raises the limit of the length of files, which also limits memory that is shared by descriptors.
inline rlim_t raise_file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return RLIM_INFINITY;
  const auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : before;
}

// The kernel gives a new file the lowest free number, so a number from here on shows that nearly
// all are in use. The rest is reserved for operators, for clients that wait to be
// admitted, for descriptors in requests, and for descriptors waiting to be closed.
inline rlim_t reserved_files(rlim_t limit) {
  constexpr rlim_t kLeast = 384, kMost = 16'384;
  return std::min(std::clamp(limit / 4, kLeast, kMost), limit / 2);
}

inline int first_reserved_file() {
  constexpr int kHighest = std::numeric_limits<int>::max();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kHighest;
  const auto first = limit.rlim_cur - reserved_files(limit.rlim_cur);
  return static_cast<int>(std::min<rlim_t>(first, kHighest));
}

// Returns how many clients may wait to be admitted.
inline std::size_t room_for_newcomers() {
  constexpr rlim_t kLeast = 16, kMost = 1'024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::clamp(limit.rlim_cur / 16, kLeast, kMost);
}

// Returns how many of the reserved files may be foreign: attached to a request, or waiting to be
// closed.
inline std::size_t room_for_foreign_files() {
  constexpr rlim_t kForOperators = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const auto reserved = reserved_files(limit.rlim_cur);
  return reserved - std::min(kForOperators + room_for_newcomers(), reserved);
}

// All memory mappings that a process may have.
inline std::uint64_t most_mappings() {
  constexpr std::uint64_t kUsual = 65'530;  // the kernel's default, where the file cannot be read
  std::uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most == 0 ? kUsual : most;
}

}  // namespace stp::os
