// SPDX-License-Identifier: BSD-3-Clause
// Open files: a service holds one for each client and each channel, more than the usual soft limit
// allows. For programs; the library leaves the limits of its process alone.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace stp::service {

// As far as the hard limit goes. Returns the files this process may have open now.
inline rlim_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  auto const before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

// A file gets the lowest number that is free: one from here on says that nearly all are in use. The
// ones that are left are for operators, for descriptors that come along with requests, and for what
// waits to be closed.
inline rlim_t reserved_files(rlim_t limit) {
  constexpr rlim_t kLeast = 384, kMost = 16'384;
  return std::min(std::clamp(limit / 4, kLeast, kMost), limit / 2);
}

inline int first_reserved_file() {
  constexpr int kHighest = std::numeric_limits<int>::max();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kHighest;
  auto const first = limit.rlim_cur - reserved_files(limit.rlim_cur);
  return static_cast<int>(std::min<rlim_t>(first, kHighest));
}

// How many of those may be foreign: in the hands of a request, or waiting to be closed.
inline std::size_t room_for_foreign_files() {
  constexpr rlim_t kForOperators = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  auto const reserved = reserved_files(limit.rlim_cur);
  return reserved - std::min(kForOperators, reserved);
}

}  // namespace stp::service
