// SPDX-License-Identifier: BSD-3-Clause
// The receiver's directory and what lies below it. No symbolic link below it is ever followed, so
// that nothing is written outside, whatever a sender has put there before. Functions give 0 or a
// negative errno.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "tools/files/metadata.h"

namespace stp::files {

// An open directory, for as long as somebody needs it.
using Directory = std::shared_ptr<const os::UniqueFd>;

// Directories below a root. The last one used stays open, because files of one directory mostly
// come one after the other.
class DirectoriesBelow {
 public:
  explicit DirectoriesBelow(const std::string& root) : root_(root) {}
  // Opens the directory that `names` lead to, to write into it. Makes what is missing on the way,
  // also in place of files. -ENOTDIR: something else is there.
  // Directories of this user become writable for it.
  int open(std::span<const std::string> names, Directory& directory) {
    return open(names, directory, S_IRWXU);
  }
  // Makes nothing: -ENOENT, also where a file is that open() would replace. Nor does it change
  // anything: -EAGAIN where a directory of this user has no permission to read, which open() would
  // give it.
  int find(std::span<const std::string> names, Directory& directory) const {
    return find(names, directory, false);
  }
  // As find(), but opens directories of this user whatever their permissions, which stay as they
  // are.
  int look(std::span<const std::string> names, Directory& directory) const {
    return find(names, directory, true);
  }
  // As open(), but what is missing gets the usual permissions, because no entry of its own follows.
  int make(std::span<const std::string> names, Directory& directory);

 private:
  int open(std::span<const std::string> names, Directory& directory, mode_t mode_of_new);
  int find(std::span<const std::string> names, Directory& directory, bool closed_ones) const;

  const std::string& root_;
  std::vector<std::string> last_names_;
  Directory last_;
};

// The mode without the bits of the umask. The umask is the one that the process had at the first
// call.
mode_t permitted(mode_t mode);

// Gives an open file or directory its permissions, less what the umask of this process takes away,
// and, where they are kept, its times.
int apply(int fd, const Metadata& metadata);
// The times alone.
int apply_times(int fd, const Metadata& metadata);

// Adds permissions to a file or directory that belongs to this user. False: it does not.
bool grant_to_owner(int directory, const std::string& name, mode_t bits);

// Makes or replaces a symbolic link; a directory is not replaced (-EISDIR).
int make_link(int directory, const std::string& name, const Metadata& metadata);

// The status is of a file with the time that `metadata` wants kept.
bool has_time(const struct stat& found, const Metadata& metadata);
bool is_link_to(int directory, const std::string& name, const std::string& target);
// Gives a file the permissions, and where they are kept the times, that it should have.
int correct(int directory, const std::string& name, const Metadata& metadata);
// The permissions alone.
int correct_mode(int directory, const std::string& name, const Metadata& metadata);

// -EISDIR where a directory has that name.
int refuse_directory(int directory, const std::string& name);

// False: the file system has no room for so many bytes. Some file systems have no notion of blocks
// (ramfs, tmpfs without a limit, some of FUSE): they have none at all, and may have room.
bool has_room(const struct statvfs& space, std::uint64_t bytes);
// -ENOSPC where the file system of `directory` has no room for so many bytes. `room`: what it has;
// nullopt: that is not known.
int refuse_size(int directory, std::uint64_t bytes, std::optional<std::uint64_t>* room = nullptr);

}  // namespace stp::files
