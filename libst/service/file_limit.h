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
// few that are left are for operators, and for descriptors that come along with requests.
inline int first_reserved_file() {
  constexpr rlim_t kReserve = 64;
  constexpr int kHighest = std::numeric_limits<int>::max();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kHighest;
  auto const first = limit.rlim_cur - std::min(kReserve, limit.rlim_cur / 4);
  return static_cast<int>(std::min<rlim_t>(first, kHighest));
}

}  // namespace stp::service
