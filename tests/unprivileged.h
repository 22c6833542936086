// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace stp::test {

// As long as it lives, a process of root is one of a user without privileges, to whom the directory
// then belongs. A process of another user is that anyway.
class Unprivileged {
 public:
  explicit Unprivileged(const std::string& directory) {
    if (!was_root_) return;
    if (::chown(directory.c_str(), kNobody, kNobody) != 0 || ::seteuid(kNobody) != 0)
      throw std::runtime_error("cannot become another user");
  }
  ~Unprivileged() {
    if (!was_root_) return;
    [[maybe_unused]] const auto result = ::seteuid(0);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_ = ::geteuid() == 0;
};

}  // namespace stp::test
