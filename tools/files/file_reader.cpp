// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

// Opened without waiting, so that a FIFO is told from a file instead of hanging.
int open_for_reading(const std::string& path) {
  auto const fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw FileFailure("cannot read it: " + error_text(errno));
  return fd;
}

Metadata describe_file(int fd, const std::string& path) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) throw FileFailure("cannot read it: " + error_text(errno));
  if (!S_ISREG(file.st_mode))
    throw FileFailure("not a regular file; pack directories into an archive first");
  auto name = accepted_name(path);
  if (!name)
    throw FileFailure(
        "no receiver accepts a file of that name (control characters, or too long); "
        "rename it");
  return {static_cast<std::uint64_t>(file.st_size), static_cast<std::uint16_t>(file.st_mode & 0777),
          std::move(*name)};
}

}  // namespace

FileReader::FileReader(const std::string& path) : fd_(open_for_reading(path)) {
  try {
    metadata_ = describe_file(fd_, path);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

FileReader::~FileReader() {
  ::close(fd_);
}

void FileReader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    auto const n = ::read(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileFailure("reading failed: " + error_text(errno));
    if (n == 0) throw FileFailure("it became shorter while it was sent; send it again");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace stp::files
