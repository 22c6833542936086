// SPDX-License-Identifier: BSD-3-Clause
// Standard input, output and error of a program. For programs only, not for the library.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

namespace stp::os {

// What becomes of output where the stream was closed.
enum class ClosedOutput {
  kFails,     // writing fails with EBADF, as it would otherwise
  kVanishes,  // nobody wants to read it
};
// Which of the descriptors 0 to 2 were closed.
using ClosedStreams = std::array<bool, 3>;

// Call first. A program may be started without these descriptors; without this, the first files and
// sockets that it opens would get their numbers, and be read from or written to in their place.
// Here /dev/null takes the number. Reading fails with EBADF, as it would without it.
// A write beyond the limit of file sizes (ulimit -f) then fails with EFBIG and ends no program.
inline ClosedStreams hold_standard_streams(ClosedOutput output = ClosedOutput::kFails) {
  std::signal(SIGXFSZ, SIG_IGN);
  ClosedStreams closed{};
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    closed.at(static_cast<std::size_t>(fd)) = true;
    const bool writes = fd == STDIN_FILENO || output == ClosedOutput::kVanishes;
    // Gets the lowest free number, which is this one.
    if (::open("/dev/null", writes ? O_WRONLY : O_RDONLY) < 0) break;
  }
  return closed;
}

// Writes what is buffered for standard output. "": all that was printed has been written.
inline std::string output_trouble() {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && !failed) return {};
  // The reason of an earlier failure is gone: one more try has the same. The output is cut off
  // anyway.
  if (flushed && ::write(STDOUT_FILENO, "\n", 1) >= 0) errno = 0;
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

}  // namespace stp::os
