// SPDX-License-Identifier: BSD-3-Clause
// The file of a listening socket. Its directory may belong to another user, who can replace the
// file at any time. So the class opens the directory once and checks it. After bind(2), which takes
// a path, it checks that the file in that directory is the one that was made, and changes it only
// through a descriptor.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "libst/os/unique_fd.h"

namespace stp::service {

// Decides who may connect. By default every local user may: a client reaches only its own objects,
// and only root's clients may choose Keys.
struct SocketAccess {
  mode_t mode = 0666;
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

class SocketFile {
 public:
  // Binds `socket` to `path`, and sets owner and mode of the file. First removes a stale socket
  // file, one that nobody answers on. Returns 0; -EADDRINUSE: something exists there; -EPERM: the
  // directory is not safe, or the owner cannot be set; -ENAMETOOLONG, -ENOENT, ...
  int bind(int socket, const std::string& path, const SocketAccess& access);
  // Removes only the file that bind() made: another daemon may have taken over the name.
  void remove();

 private:
  int open_directory(const std::string& path);
  int give(const SocketAccess& access);
  bool remove_stale(const std::string& path);

  UniqueFd directory_;
  std::string name_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  // 0: bind() has made no file
};

// True if only its owner and root can remove or rename a file in the directory of `path`: others
// may not write there, or it is sticky.
bool directory_is_safe(const std::string& path);

// True if `beside` belongs to root, to this user, or to the owner of `path`.
bool is_made_by_owner_of(const std::string& path, const std::string& beside);
// The same of whoever listens at the other end of `connected`: somebody may have replaced a file
// since it was looked at.
bool is_served_by_owner_of(const std::string& path, int connected);

// Creates the directory of `path`, accessible to all and writable for `owner`. Leaves an existing
// directory as it is. Returns 0 or a negative errno.
int make_directory_of(const std::string& path, std::optional<uid_t> owner);

}  // namespace stp::service
