// SPDX-License-Identifier: BSD-3-Clause
// A directory of a tree that is sent or removed. It is opened in its open parent directory, never
// along a path, and no symbolic link is followed. Of all directories of a tree only a few are open
// at once: the others are opened again when they are used, and are then still the same or an error.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/directory.h"

namespace stp::files {

class SourceDirectory {
 public:
  using Pointer = std::shared_ptr<SourceDirectory>;
  // Open ones of a tree, whatever its breadth and depth.
  static constexpr std::size_t kMostOpen = 16;

  // `above`: nullptr for the root of a tree. Returns nullptr if it cannot be opened; see errno.
  static Pointer open(Pointer above, std::string name);
  // The root of a tree is an open directory.
  static Pointer of(const Directory& directory);
  ~SourceDirectory();
  SourceDirectory(const SourceDirectory&) = delete;
  SourceDirectory& operator=(const SourceDirectory&) = delete;

  // A descriptor that is good until another directory of the tree is used. -1: see errno; ESTALE
  // says that another directory has its name.
  int fd();

 private:
  using OpenOnes = std::list<SourceDirectory*>;  // the one that was used last comes first

  SourceDirectory(Directory base, Pointer above, std::string name);
  [[nodiscard]] int base() const { return base_ ? base_->get() : AT_FDCWD; }
  void use();
  bool open_below(int above);
  void close();

  const Directory base_;  // of the root; nullptr: the current one
  const Pointer above_;
  const std::string name_;
  const std::shared_ptr<OpenOnes> open_ones_;  // of the tree
  OpenOnes::iterator place_;                   // while it is open
  service::UniqueFd fd_;
  bool known_ = false;  // the following are
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Calls `use` for each name in an open directory but "." and "..". Gives 0 or a positive errno.
int each_entry(int directory, const std::function<void(const dirent&)>& use);
// The same names, sorted.
int names_in(int directory, std::vector<std::string>& names);

}  // namespace stp::files
