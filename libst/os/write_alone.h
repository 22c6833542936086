// SPDX-License-Identifier: BSD-3-Clause
// A file that is written anew, and by nobody else at the same time.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "libst/os/unique_fd.h"

namespace stp::os {

enum class Before { kStays, kGoes };  // what a file had

// Makes the file, or opens one that is there. As long as a descriptor of it is open, in whatever
// process it was sent to, nobody else gets it from here. It is not open: errno says why, and EBUSY
// that another one has it. What is no regular file, as a pipe, may have several writers.
inline UniqueFd open_to_write_alone(const std::string& path, Before before = Before::kGoes,
                                    int flags = 0) {
  constexpr mode_t kMode = 0644;
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, kMode));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return file;
  int error = 0;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    error = EBUSY;
  else if (before == Before::kGoes && ::ftruncate(file.get(), 0) != 0)
    error = errno;
  if (error != 0) file.reset();
  errno = error;
  return file;
}

// Of errno.
inline std::string why_not_to_write(int error) {
  if (error == EBUSY) return "another trace is written there at present";
  if (error == ENXIO) return "it is a socket, or a pipe that nobody reads: name a regular file";
  return std::strerror(error);
}

}  // namespace stp::os
