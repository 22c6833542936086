// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tools/files/name.h"

namespace stp::files {
namespace {

std::string temporary_name() {
  static std::atomic<unsigned> number{0};
  return std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "." +
         std::to_string(number++) + ".part";
}

}  // namespace

// What would make commit() fail is better said before the content travels.
int FileWriter::refuse_target(std::uint64_t size) const {
  struct stat target {};
  if (::fstatat(directory_, name_.c_str(), &target, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(target.st_mode))
    return -EISDIR;
  struct statvfs space {};
  if (::fstatvfs(directory_, &space) == 0 && space.f_frsize != 0 &&
      size / space.f_frsize >= space.f_bavail && size > 0)
    return -ENOSPC;
  return 0;
}

int FileWriter::open(const std::string& directory, const std::string& name, std::uint64_t size,
                     std::uint16_t mode) {
  discard();
  name_ = name;
  mode_ = mode;
  written_ = 0;
  directory_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0) return -errno;
  if (auto const error = refuse_target(size); error != 0) return error;
  auto temporary = temporary_name();
  fd_ = ::openat(directory_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) return -errno;
  temporary_ = std::move(temporary);
  return 0;
}

int FileWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto const n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    written_ += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int FileWriter::commit() {
  if (::fchmod(fd_, mode_) != 0 || ::fsync(fd_) != 0 ||
      ::renameat(directory_, temporary_.c_str(), directory_, name_.c_str()) != 0)
    return -errno;
  temporary_.clear();
  auto const error = ::fsync(directory_) == 0 ? 0 : -errno;
  discard();
  return error;
}

void FileWriter::discard() {
  if (!temporary_.empty()) ::unlinkat(directory_, temporary_.c_str(), 0);
  temporary_.clear();
  if (fd_ >= 0) ::close(fd_);
  if (directory_ >= 0) ::close(directory_);
  fd_ = directory_ = -1;
}

}  // namespace stp::files
