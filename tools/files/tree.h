// SPDX-License-Identifier: BSD-3-Clause
// All that a directory holds, in an order that a receiver can follow: what is in a directory comes
// before the directory itself, whose permissions and time are then final.
//
// Each name is looked up in the directory that was opened before, never along a path, and no
// symbolic link is followed: somebody who may write to the tree and swaps a directory for a link
// meanwhile does not lead out of it. What `root` itself leads to is the caller's choice.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <string>

#include "tools/files/directory.h"
#include "tools/files/exclude.h"

namespace stp::files {

struct TreeEntry {
  Directory directory;     // where `name` is; nullptr: the current one
  std::string name;        // "": the directory itself
  std::string path;        // for messages
  std::string path_there;  // below the receiver's directory
  struct stat status {};   // as it was found

  [[nodiscard]] int at() const { return directory ? directory->get() : AT_FDCWD; }
};

// Calls `visit` for each that `exclude` does not match; `path_there` begins with the base name of
// `root`, or is below nothing where that has none ("."). What cannot be read is told to `failed`,
// by its path and the reason.
void walk_tree(const std::string& root, const Exclude& exclude,
               const std::function<void(const TreeEntry&)>& visit,
               const std::function<void(const std::string&, const std::string&)>& failed);

}  // namespace stp::files
