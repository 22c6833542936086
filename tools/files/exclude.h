// SPDX-License-Identifier: BSD-3-Clause
// Files and directories of a tree that are not sent, by patterns as those of a shell.
#pragma once

#include <string>
#include <vector>

namespace stp::files {

class Exclude {
 public:
  Exclude() = default;
  // `root`: what the paths begin with there, and the patterns do not know.
  Exclude(const std::vector<std::string>& patterns, const std::string& root)
      : patterns_(patterns), root_(root) {}
  // Of a path below the receiver's directory. A pattern without a slash is that of a name at any
  // depth; one with a slash, that of a whole path below the root. One that ends with a slash is
  // meant for directories only. The root itself is never excluded.
  [[nodiscard]] bool matches(const std::string& path_there, bool is_directory) const;

 private:
  std::vector<std::string> patterns_;
  std::string root_;
};

}  // namespace stp::files
