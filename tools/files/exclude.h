// SPDX-License-Identifier: BSD-3-Clause
// Files and directories of a tree that are not sent, by patterns as those of a shell.
#pragma once

#include <string>
#include <vector>

namespace stp::files {

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

}  // namespace stp::files
