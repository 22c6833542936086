// SPDX-License-Identifier: BSD-3-Clause
// Standard input, output and error of a program that was started without some of them. The next
// file that it opens would get that number: a message would then go into a socket, and what is read
// as standard input would come from there. For programs only.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace stp::service {

// Which of the descriptors 0 to 2 were closed.
using ClosedFiles = std::array<bool, 3>;

// Opens /dev/null in place of each that is closed, only for writing: reading standard input then
// fails as if it were closed. Call it before anything else is opened.
inline ClosedFiles open_standard_files() {
  ClosedFiles closed{};
  for (int fd = 0; fd < static_cast<int>(closed.size()); ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    closed.at(static_cast<std::size_t>(fd)) = true;
    // The lowest free number is `fd`, because those below it are open now.
    [[maybe_unused]] const auto opened = ::open("/dev/null", O_WRONLY);
  }
  return closed;
}

}  // namespace stp::service
