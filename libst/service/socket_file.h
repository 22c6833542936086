// SPDX-License-Identifier: BSD-3-Clause
// The file of a listening socket. Its directory may be another user's, who can put something else
// in its place at any moment: so the directory and the file are looked at once, held by
// descriptors, and everything is done to those.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "libst/os/unique_fd.h"

namespace stp::service {

// Who may connect. Any local user by default: a client reaches only what it made itself, and only
// root's may choose Keys.
struct SocketAccess {
  mode_t mode = 0666;
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

class SocketFile {
 public:
  // Binds `socket` to `path`, and gives the file its owner and mode. A socket file that nobody
  // answers on is removed first. 0, or: -EADDRINUSE: something is there; -EPERM: the directory is
  // not safe, or the file cannot be given away; -ENAMETOOLONG, -ENOENT, ...
  int bind(int socket, const std::string& path, const SocketAccess& access);
  // Only what bind() made: by now another daemon may have taken the name over.
  void remove();

 private:
  int open_directory(const std::string& path);
  int give(const SocketAccess& access);
  bool remove_stale(const std::string& path);

  UniqueFd directory_;
  std::string name_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  // 0: there is none of ours
};

// Nobody but its owner and root can take a file out of the directory that `path` lies in, or
// rename it: others may not write there, or it is sticky.
bool directory_is_safe(const std::string& path);

// Makes the directory that `path` lies in, for all to enter and `owner` to write. Nothing is done
// to one that is there already. 0 or a negative errno.
int make_directory_of(const std::string& path, std::optional<uid_t> owner);

}  // namespace stp::service
