// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace stp::files {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::array<std::timespec, 2> times_of(const Metadata& metadata) {
  return {std::timespec{0, UTIME_OMIT}, metadata.modified};
}

// Read once, because reading the umask means setting it. Meanwhile files made by another thread
// have no permissions for group and others.
mode_t umask_at_start() {
  static const mode_t mask = [] {
    const auto found = ::umask(077);
    ::umask(found);
    return found;
  }();
  return mask;
}

os::UniqueFd open_as_it_is(int above, const std::string& name) {
  return os::UniqueFd(::openat(above, name.c_str(), kOpenDirectory | O_NOFOLLOW));
}

// Opens a directory to write into it. An earlier transfer may have given a directory of this user
// a mode without write permission; its own entry, which comes after its content, does so again.
os::UniqueFd open_for_content(int above, const std::string& name) {
  auto opened = open_as_it_is(above, name);
  if (!opened && errno == EACCES) {
    if (grant_to_owner(above, name, S_IRWXU))
      opened = open_as_it_is(above, name);
    else
      errno = EACCES;
  }
  if (opened && ::faccessat(opened.get(), ".", W_OK | X_OK, AT_EACCESS) != 0 && errno == EACCES)
    grant_to_owner(above, name, S_IRWXU);
  return opened;
}

// Makes a directory in place of a file, as a file replaces another one. True if there was none.
bool replace_file(int above, const std::string& name, mode_t mode) {
  struct stat found {};
  if (::fstatat(above, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode))
    return true;
  return ::unlinkat(above, name.c_str(), 0) == 0 && ::mkdirat(above, name.c_str(), mode) == 0;
}

struct Opened {
  os::UniqueFd fd;
  bool has_more = false;  // permissions, for a moment
  mode_t before = 0;      // its own
  void restore() {
    const auto error = errno;
    if (fd && std::exchange(has_more, false)) ::fchmod(fd.get(), before);
    errno = error;
  }
};

// A directory of this user gets the permissions that it lacks, until they are restored.
Opened open_closed_too(int above, const std::string& name) {
  Opened opened{open_as_it_is(above, name)};
  const auto error = errno;
  struct stat found {};
  if ((opened.fd ? ::faccessat(opened.fd.get(), ".", X_OK, AT_EACCESS) == 0 : error != EACCES) ||
      ::fstatat(above, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 ||
      !grant_to_owner(above, name, S_IRUSR | S_IXUSR)) {
    errno = error;
    return opened;
  }
  if (!opened.fd) opened.fd = open_as_it_is(above, name);
  opened.has_more = true;
  opened.before = found.st_mode & 07777U;
  return opened;
}

// What a name that leads to no directory is for find(): an errno.
int reason_against(int above, const std::string& name, int error) {
  struct stat found {};
  if (::fstatat(above, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return error;
  if (error == ENOTDIR && S_ISREG(found.st_mode)) return ENOENT;
  const auto own = !S_ISLNK(found.st_mode) && found.st_uid == ::geteuid();
  return error == EACCES && own ? EAGAIN : error;
}

}  // namespace

int DirectoriesBelow::find(std::span<const std::string> names, Directory& directory,
                           bool closed_ones) const {
  Opened at{os::UniqueFd(::open(root_.c_str(), kOpenDirectory))};
  for (const auto& name : names) {
    if (!at.fd) break;
    auto next =
        closed_ones ? open_closed_too(at.fd.get(), name) : Opened{open_as_it_is(at.fd.get(), name)};
    if (!next.fd) errno = reason_against(at.fd.get(), name, errno);
    at.restore();
    at = std::move(next);
  }
  at.restore();
  if (!at.fd) return -errno;
  directory = std::make_shared<const os::UniqueFd>(std::move(at.fd));
  return 0;
}

int DirectoriesBelow::make(std::span<const std::string> names, Directory& directory) {
  return open(names, directory, S_IRWXU | S_IRWXG | S_IRWXO);
}

int DirectoriesBelow::open(std::span<const std::string> names, Directory& directory,
                           mode_t mode_of_new) {
  if (last_ && std::equal(names.begin(), names.end(), last_names_.begin(), last_names_.end())) {
    directory = last_;
    return 0;
  }
  os::UniqueFd at(::open(root_.c_str(), kOpenDirectory));
  for (const auto& name : names) {
    if (at.get() < 0) break;
    // Only the owner has access until the directory's own entry arrives, after its content.
    if (::mkdirat(at.get(), name.c_str(), mode_of_new) != 0 &&
        (errno != EEXIST || !replace_file(at.get(), name, mode_of_new)))
      return -errno;
    at = open_for_content(at.get(), name);
  }
  if (at.get() < 0) return -errno;
  last_ = std::make_shared<const os::UniqueFd>(std::move(at));
  last_names_.assign(names.begin(), names.end());
  directory = last_;
  return 0;
}

bool grant_to_owner(int directory, const std::string& name, mode_t bits) {
  struct stat found {};
  if (::fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 ||
      S_ISLNK(found.st_mode) || found.st_uid != ::geteuid())
    return false;
  return ::fchmodat(directory, name.c_str(), (found.st_mode & 07777U) | bits,
                    AT_SYMLINK_NOFOLLOW) == 0;
}

mode_t permitted(mode_t mode) {
  return mode & ~umask_at_start();
}

int apply(int fd, const Metadata& metadata) {
  if (::fchmod(fd, permitted(metadata.mode)) != 0) return -errno;
  return apply_times(fd, metadata);
}

int apply_times(int fd, const Metadata& metadata) {
  if (!metadata.keep_times) return 0;
  return ::futimens(fd, times_of(metadata).data()) == 0 ? 0 : -errno;
}

bool has_time(const struct stat& found, const Metadata& metadata) {
  return metadata.keep_times && found.st_mtim.tv_sec == metadata.modified.tv_sec &&
         found.st_mtim.tv_nsec == metadata.modified.tv_nsec;
}

bool is_link_to(int directory, const std::string& name, const std::string& target) {
  std::array<char, kMaxPathLength + 1> text;
  const auto length = ::readlinkat(directory, name.c_str(), text.data(), text.size());
  return length >= 0 && std::string_view(text.data(), static_cast<std::size_t>(length)) == target;
}

int correct_mode(int directory, const std::string& name, const Metadata& metadata) {
  os::UniqueFd const file(
      ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  const auto mode = permitted(metadata.mode);
  if (file) return ::fchmod(file.get(), mode) == 0 ? 0 : -errno;
  // Its owner may not be permitted to open it, but to change that.
  if (errno != EACCES) return -errno;
  return ::fchmodat(directory, name.c_str(), mode, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

int correct(int directory, const std::string& name, const Metadata& metadata) {
  if (const auto error = correct_mode(directory, name, metadata); error != 0) return error;
  if (!metadata.keep_times) return 0;
  return ::utimensat(directory, name.c_str(), times_of(metadata).data(), AT_SYMLINK_NOFOLLOW) == 0
             ? 0
             : -errno;
}

namespace {

bool knows_room(const struct statvfs& space) {
  return space.f_frsize != 0 && space.f_blocks != 0;
}

}  // namespace

bool has_room(const struct statvfs& space, std::uint64_t bytes) {
  return !knows_room(space) || bytes == 0 || bytes / space.f_frsize < space.f_bavail;
}

int refuse_size(int directory, std::uint64_t bytes, std::optional<std::uint64_t>* room) {
  struct statvfs space {};
  if (::fstatvfs(directory, &space) != 0) return 0;
  if (room != nullptr && knows_room(space)) *room = space.f_bavail * space.f_frsize;
  return has_room(space, bytes) ? 0 : -ENOSPC;
}

int refuse_directory(int directory, const std::string& name) {
  struct stat target {};
  const auto found = ::fstatat(directory, name.c_str(), &target, AT_SYMLINK_NOFOLLOW) == 0;
  return found && S_ISDIR(target.st_mode) ? -EISDIR : 0;
}

int make_link(int directory, const std::string& name, const Metadata& metadata) {
  if (const auto error = refuse_directory(directory, name); error != 0) return error;
  const auto temporary = temporary_name();
  if (::symlinkat(metadata.target.c_str(), directory, temporary.c_str()) != 0) return -errno;
  if (metadata.keep_times)
    ::utimensat(directory, temporary.c_str(), times_of(metadata).data(), AT_SYMLINK_NOFOLLOW);
  if (::renameat(directory, temporary.c_str(), directory, name.c_str()) == 0) return 0;
  const auto error = -errno;
  ::unlinkat(directory, temporary.c_str(), 0);
  return error;
}

}  // namespace stp::files
