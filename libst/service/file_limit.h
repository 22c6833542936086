// SPDX-License-Identifier: BSD-3-Clause
// Open files: a service holds one for each client and each channel, more than the usual soft limit
// allows. For programs; the library leaves the limits of its process alone.
#pragma once

#include <sys/resource.h>

namespace stp::service {

// As far as the hard limit goes. Returns the files this process may have open now.
inline rlim_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  auto const before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace stp::service
