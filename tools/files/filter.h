// SPDX-License-Identifier: BSD-3-Clause
// What of a tree is sent, by patterns as those of a shell.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace stp::files {

struct FilterRule {
  bool include = false;  // what matches is sent; otherwise it is not
  std::string pattern;
};

// Rules of a file, one a line: "- PATTERN", "+ PATTERN", or PATTERN alone, which is `include`.
// Lines that are empty or begin with # or ; are comments.
std::vector<FilterRule> read_rules(std::istream& in, bool include);

class Filter {
 public:
  Filter() = default;
  // `root`: the prefix of the paths at the receiver. Patterns do not contain it.
  Filter(std::vector<FilterRule> rules, std::string root)
      : rules_(std::move(rules)), root_(std::move(root)) {}
  // `path`: below the receiver's directory. The first rule that matches decides; without one the
  // path is sent. A pattern without a slash matches a name at any depth. A pattern with a slash
  // matches a whole path below the root. A pattern that ends with a slash matches only directories.
  // The root itself is never left out.
  [[nodiscard]] bool leaves_out(const std::string& path_there, bool is_directory) const;

 private:
  std::vector<FilterRule> rules_;
  std::string root_;
};

}  // namespace stp::files
