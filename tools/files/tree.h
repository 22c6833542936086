// SPDX-License-Identifier: BSD-3-Clause
// Walks a directory in an order that suits the receiver: the content of a directory comes before
// the directory itself, so its permissions and time are then final.
//
// The walk looks up each name in its open parent directory, never along a path, and follows no
// symbolic link (see source_directory.h). So a user who replaces a directory by a link meanwhile
// cannot lead the walk out of the tree. If `root` itself is a link, the caller decides.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "tools/files/filter.h"
#include "tools/files/source_directory.h"

namespace stp::files {

struct TreeEntry {
  SourceDirectory::Pointer directory;  // where `name` is; nullptr: the current one
  std::string name;                    // "": the directory itself
  std::string path;                    // for messages
  std::string path_there;              // below the receiver's directory
  struct stat status {};               // as it was found

  // -1: it is not there any more; see errno.
  [[nodiscard]] int at() const { return directory ? directory->fd() : AT_FDCWD; }
};

using Visit = std::function<void(const TreeEntry&)>;
// Gets a path and the reason why it cannot be sent.
using Failed = std::function<void(const std::string&, const std::string&)>;

// Calls `visit` for each item that `filter` does not leave out. `path_there` begins with `name`, or
// has no prefix if that is empty. Calls `failed` for each item that cannot be read.
void walk_tree(const std::string& root, const std::string& name, const Filter& filter,
               const Visit& visit, const Failed& failed);

// The same for a part of the tree: `paths` below the root, directories with all that they hold, and
// the directories on the way. Nothing is visited twice.
void walk_listed(const std::string& root, const std::string& name,
                 const std::vector<std::string>& paths, const Filter& filter, const Visit& visit,
                 const Failed& failed);

// Visits only the root, whatever it holds.
void look_at_root(const std::string& root, const std::string& name, const Visit& visit,
                  const Failed& failed);
// Visits only what is listed below the root, whatever that holds.
void look_at_listed(const std::string& root, const std::string& name,
                    const std::vector<std::string>& paths, const Filter& filter, const Visit& visit,
                    const Failed& failed);

// The paths in a list: one a line, or, where there are zeros, one before each zero. Lines that
// begin with # or ; are comments.
std::vector<std::string> read_paths(std::istream& in);

}  // namespace stp::files
