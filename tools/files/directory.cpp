// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace stp::files {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::array<std::timespec, 2> times_of(const Metadata& metadata) {
  return {std::timespec{0, UTIME_OMIT}, metadata.modified};
}

// Only setting the umask tells it. Meanwhile it is the strictest: what another thread makes then
// has no permissions for others anyway.
mode_t current_umask() {
  static std::mutex mutex;
  std::lock_guard const guard(mutex);
  auto const mask = ::umask(077);
  ::umask(mask);
  return mask;
}

}  // namespace

int open_below(const std::string& root, std::span<const std::string> names,
               service::UniqueFd& directory) {
  service::UniqueFd at(::open(root.c_str(), kOpenDirectory));
  for (auto const& name : names) {
    if (at.get() < 0) break;
    // Its owner alone, until its own entry comes, after all that is in it.
    if (::mkdirat(at.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return -errno;
    at = service::UniqueFd(::openat(at.get(), name.c_str(), kOpenDirectory | O_NOFOLLOW));
  }
  if (at.get() < 0) return -errno;
  directory = std::move(at);
  return 0;
}

int apply(int fd, const Metadata& metadata) {
  if (::fchmod(fd, metadata.mode & ~current_umask()) != 0) return -errno;
  if (!metadata.keep_times) return 0;
  return ::futimens(fd, times_of(metadata).data()) == 0 ? 0 : -errno;
}

int refuse_directory(int directory, const std::string& name) {
  struct stat target {};
  auto const found = ::fstatat(directory, name.c_str(), &target, AT_SYMLINK_NOFOLLOW) == 0;
  return found && S_ISDIR(target.st_mode) ? -EISDIR : 0;
}

int make_link(int directory, const std::string& name, const Metadata& metadata) {
  if (auto const error = refuse_directory(directory, name); error != 0) return error;
  auto const temporary = temporary_name();
  if (::symlinkat(metadata.target.c_str(), directory, temporary.c_str()) != 0) return -errno;
  if (metadata.keep_times)
    ::utimensat(directory, temporary.c_str(), times_of(metadata).data(), AT_SYMLINK_NOFOLLOW);
  if (::renameat(directory, temporary.c_str(), directory, name.c_str()) == 0) return 0;
  auto const error = -errno;
  ::unlinkat(directory, temporary.c_str(), 0);
  return error;
}

}  // namespace stp::files
