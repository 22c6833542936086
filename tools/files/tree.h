// SPDX-License-Identifier: BSD-3-Clause
// Walks a directory in an order that suits the receiver: the content of a directory comes before
// the directory itself, so its permissions and time are then final.
//
// The walk looks up each name in its open parent directory, never along a path, and follows no
// symbolic link. So a user who replaces a directory by a link meanwhile cannot lead the walk out of
// the tree. If `root` itself is a link, the caller decides.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/files/directory.h"

namespace stp::files {

// What of a tree is not sent, by patterns as those of a shell.
class Exclude {
 public:
  Exclude() = default;
  // `root`: the prefix of the paths at the receiver. Patterns do not contain it.
  Exclude(const std::vector<std::string>& patterns, const std::string& root)
      : patterns_(patterns), root_(root) {}
  // `path`: below the receiver's directory. A pattern without a slash matches a name at any depth.
  // A pattern with a slash matches a whole path below the root. A pattern that ends with a slash
  // matches only directories. The root itself is never excluded.
  [[nodiscard]] bool matches(const std::string& path_there, bool is_directory) const;

 private:
  std::vector<std::string> patterns_;
  std::string root_;
};

struct TreeEntry {
  Directory directory;     // where `name` is; nullptr: the current one
  std::string name;        // "": the directory itself
  std::string path;        // for messages
  std::string path_there;  // below the receiver's directory
  struct stat status {};   // as it was found

  [[nodiscard]] int at() const { return directory ? directory->get() : AT_FDCWD; }
};

// Calls `visit` for each item that `exclude` does not match. `path_there` begins with the base name
// of `root`, or has no prefix if there is none ("."). Calls `failed` with the path and the reason
// for each item that cannot be read.
void walk_tree(const std::string& root, const Exclude& exclude,
               const std::function<void(const TreeEntry&)>& visit,
               const std::function<void(const std::string&, const std::string&)>& failed);

}  // namespace stp::files
