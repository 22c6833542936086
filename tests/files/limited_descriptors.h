// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>

namespace stp::test {

// As long as it lives, the process can open only so many descriptors more.
class LimitedDescriptors {
 public:
  explicit LimitedDescriptors(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto limited = before_;
    // All below the lowest free one are in use; others above it may be.
    const auto lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (lowest < 0) throw std::runtime_error("no descriptor is left");
    ::close(lowest);
    limited.rlim_cur = static_cast<rlim_t>(lowest) + more;
    ::setrlimit(RLIMIT_NOFILE, &limited);
  }
  ~LimitedDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  LimitedDescriptors(const LimitedDescriptors&) = delete;
  LimitedDescriptors& operator=(const LimitedDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace stp::test
