// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/socket_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <filesystem>

#include "dpdk_port/link/socket_probe.h"
#include "libst/service/socket.h"

namespace stp::service {
namespace {

std::string directory_of(const std::string& path) {
  const auto directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

bool is_safe(const struct stat& directory) {
  return (directory.st_mode & S_IWOTH) == 0 || (directory.st_mode & S_ISVTX) != 0;
}

int bind_to(int socket, const std::string& path) {
  sockaddr_un address{};
  if (const auto error = address_of(path, address); error != 0) return error;
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                          : -errno;
}

// Changes the mode of an O_PATH descriptor, through its link in /proc.
int set_mode(int file, mode_t mode) {
  return ::chmod(("/proc/self/fd/" + std::to_string(file)).c_str(), mode) == 0 ? 0 : -errno;
}

bool is_trusted_at(const std::string& path, uid_t user) {
  struct stat status {};
  return user == 0 || user == ::geteuid() ||
         (::stat(path.c_str(), &status) == 0 && user == status.st_uid);
}

}  // namespace

int SocketFile::open_directory(const std::string& path) {
  directory_.reset(::open(directory_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!directory_ || ::fstat(directory_.get(), &status) != 0) return -errno;
  name_ = std::filesystem::path(path).filename().string();
  return is_safe(status) ? 0 : -EPERM;
}

int SocketFile::bind(int socket, const std::string& path, const SocketAccess& access) {
  sockaddr_un address{};
  if (const auto error = address_of(path, address); error != 0) return error;
  if (const auto error = open_directory(path); error != 0) return error;
  auto error = bind_to(socket, path);
  if (error == -EADDRINUSE && remove_stale(path)) error = bind_to(socket, path);
  if (error != 0) return error;
  error = give(access);
  if (error != 0) remove();
  return error;
}

// Sets owner and mode, after checking that the file is the one that bind(2) has made: a socket of
// this user with no other name.
int SocketFile::give(const SocketAccess& access) {
  const UniqueFd file(::openat(directory_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return -errno;
  if (!S_ISSOCK(status.st_mode) || status.st_uid != ::geteuid() || status.st_nlink != 1)
    return -EPERM;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const auto owner = access.owner.value_or(static_cast<uid_t>(-1));
  const auto group = access.group.value_or(static_cast<gid_t>(-1));
  if ((access.owner || access.group) &&
      ::fchownat(file.get(), "", owner, group, AT_EMPTY_PATH) != 0)
    return -errno;
  return set_mode(file.get(), access.mode);
}

void SocketFile::remove() {
  struct stat status {};
  if (inode_ != 0 &&
      ::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_dev == device_ && status.st_ino == inode_)
    ::unlinkat(directory_.get(), name_.c_str(), 0);
  inode_ = 0;
}

// Removes the file that a killed daemon has left behind. Keeps a file that is not a socket, and a
// socket that a process has.
bool SocketFile::remove_stale(const std::string& path) {
  struct stat status {};
  if (::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISSOCK(status.st_mode) || port::probe_socket(path) != ECONNREFUSED)
    return false;
  return ::unlinkat(directory_.get(), name_.c_str(), 0) == 0;
}

bool directory_is_safe(const std::string& path) {
  struct stat status {};
  return ::stat(directory_of(path).c_str(), &status) == 0 && is_safe(status);
}

bool is_made_by_owner_of(const std::string& path, const std::string& beside) {
  struct stat status {};
  return ::lstat(beside.c_str(), &status) == 0 && is_trusted_at(path, status.st_uid);
}

bool is_served_by_owner_of(const std::string& path, int connected) {
  ucred who{};
  socklen_t size = sizeof who;
  return ::getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
         is_trusted_at(path, who.uid);
}

int make_directory_of(const std::string& path, std::optional<uid_t> owner) {
  const auto directory = directory_of(path);
  if (::mkdir(directory.c_str(), 0755) != 0) return errno == EEXIST ? 0 : -errno;
  const UniqueFd made(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!made || ::fstat(made.get(), &status) != 0) return -errno;
  if (status.st_uid != ::geteuid()) return -EPERM;  // somebody has put another one in its place
  if (::fchmod(made.get(), 0755) != 0) return -errno;
  return owner && ::fchown(made.get(), *owner, static_cast<gid_t>(-1)) != 0 ? -errno : 0;
}

}  // namespace stp::service
