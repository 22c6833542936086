// SPDX-License-Identifier: BSD-3-Clause
// Whether whoever serves a socket is to be trusted.
#include "libst/ipc/socket.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "libst/ipc/requests.h"
#include "libst/os/unique_fd.h"

namespace stp::ipc {
namespace {

namespace fs = std::filesystem;

// The kernel shows all users that a user namespace does not have by one number, which one that it
// has may have as well.
bool is_one_user(uid_t user) {
  constexpr std::uint64_t kAll = 0xffff'ffff;
  uid_t unknown = 65'534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> unknown;
  if (user != unknown) return true;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t first = 0, outside = 0, count = 0;
  return map >> first >> outside >> count && count == kAll;
}

bool is_root_or_self(uid_t user) {
  return user == 0 || (user == ::geteuid() && is_one_user(user));
}

// Follows a path from directory to directory, through each link, and says who else than root, this
// user and `server` could have led it elsewhere.
class Way {
 public:
  Way(const std::string& path, uid_t server) : server_(server) { put_before(fs::absolute(path)); }

  std::string who_could_change_it() {
    while (!left_.empty()) {
      const auto name = left_.front();
      left_.pop_front();
      if (auto who = step(name); !who.empty()) return who;
    }
    return {};
  }

 private:
  static constexpr int kMostLinks = 40;  // as the kernel

  void put_before(const fs::path& path) {
    if (path.is_absolute()) {
      here_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
      open_error_ = errno;
      here_text_ = "/";
    }
    std::vector<fs::path> names;
    for (const auto& name : path.relative_path())
      if (!name.empty()) names.push_back(name);  // what ends in / has an empty one
    left_.insert(left_.begin(), names.begin(), names.end());
  }

  std::string step(const fs::path& name) {
    struct stat directory {
    }, entry{};
    if (!here_) return std::string("/ cannot be looked at: ") + std::strerror(open_error_);
    const auto there = (here_text_ / name).string();
    if (::fstat(here_.get(), &directory) != 0 ||
        ::fstatat(here_.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0)
      return there + " cannot be looked at: " + std::strerror(errno);
    if (auto who = who_else_could_make(directory, entry); !who.empty()) return who;
    if (S_ISLNK(entry.st_mode) && !is_of_proc()) return follow(name, there);
    if (left_.empty()) return {};  // the socket
    os::UniqueFd next(::openat(here_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) return there + " cannot be looked at: " + std::strerror(errno);
    here_ = std::move(next);
    here_text_ = there;
    return {};
  }

  std::string who_else_could_make(const struct stat& directory, const struct stat& entry) const {
    // Of a directory whose owner this namespace does not have, the owner may be the host's root.
    const auto owner = directory.st_uid;
    if (!is_root_or_self(owner) && owner != server_ && is_one_user(owner))
      return "user " + std::to_string(owner) + " may make files in " + here_text_.string();
    const auto others_write = (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    // A user may mount there what tells false owners (FUSE), and move a link or a socket of
    // another user there from a directory of its own, but no directory.
    const auto stays = (directory.st_mode & S_ISVTX) != 0 && is_root_or_self(entry.st_uid) &&
                       S_ISDIR(entry.st_mode) && entry.st_dev == directory.st_dev;
    return others_write && !stays ? "others may make files in " + here_text_.string() : "";
  }

  std::string follow(const fs::path& name, const std::string& link) {
    std::array<char, PATH_MAX> target;
    const auto length = ::readlinkat(here_.get(), name.c_str(), target.data(), target.size());
    if (length <= 0 || ++links_ > kMostLinks) return link + " is a link that leads nowhere";
    put_before(std::string(target.data(), static_cast<std::size_t>(length)));
    return {};
  }

  // Its links (/proc/PID/root) lead where no text does. Nobody can make any there.
  [[nodiscard]] bool is_of_proc() const {
    struct statfs system {};
    return ::fstatfs(here_.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
  }

  const uid_t server_;
  os::UniqueFd here_;
  int open_error_ = 0;
  fs::path here_text_;
  std::deque<fs::path> left_;  // the rest of the way
  int links_ = 0;
};

}  // namespace

std::string why_distrust(const std::string& path, uid_t server) {
  if (is_root_or_self(server)) return {};
  std::string who;
  try {
    who = Way(path, server).who_could_change_it();
  } catch (const fs::filesystem_error& error) {  // it changes meanwhile
    who = error.what();
  }
  if (who.empty()) return {};
  return "user " + std::to_string(server) + " serves this socket, and " + who +
         ": a program lends its memory to who serves its socket. Let root or user " +
         std::to_string(::geteuid()) +
         " run stpd, or put its socket where only root, this user or that of stpd may make files, "
         "as " +
         kDefaultSocket;
}

std::string why_distrust_server(const std::string& path, int connected) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return std::string("the kernel does not tell who serves this socket: ") + std::strerror(errno);
  return why_distrust(path, who.uid);
}

}  // namespace stp::ipc
