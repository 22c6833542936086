// SPDX-License-Identifier: BSD-3-Clause
// Standard input, output and error of a program. For programs only, not for the library.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace stp::service {

// Call first. A program may be started without these descriptors; without this, the first files and
// sockets that it opens would get their numbers, and be read from or written to in their place.
// Here /dev/null takes the number, opened the wrong way round: reading and writing fail with EBADF,
// as they would without it.
inline void hold_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Gets the lowest free number, which is this one.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

// Writes what is buffered for standard output. "": all that was printed has been written.
inline std::string output_trouble() {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed) return {};
  const std::string text = "cannot write to standard output";
  return errno == 0 ? text : text + ": " + std::strerror(errno);
}

// The exit status of a program that has ended with `status`: `failure` if its output is not
// written.
inline int status_with_output(const char* program, int status, int failure) {
  const auto trouble = output_trouble();
  if (trouble.empty()) return status;
  std::fprintf(stderr, "%s: %s\n", program, trouble.c_str());
  return failure;
}

}  // namespace stp::service
