// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/exclude.h"

#include <fnmatch.h>

#include <algorithm>

namespace stp::files {

bool Exclude::matches(const std::string& path_there, bool is_directory) const {
  if (patterns_.empty() || path_there == root_) return false;
  const auto below =
      root_.empty() ? path_there : path_there.substr(std::min(root_.size() + 1, path_there.size()));
  const auto name = below.substr(below.rfind('/') + 1);  // npos + 1 is 0
  return std::any_of(patterns_.begin(), patterns_.end(), [&](std::string pattern) {
    if (pattern.ends_with('/')) {
      if (!is_directory) return false;
      pattern.pop_back();
    }
    if (pattern.find('/') == std::string::npos)
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    if (pattern.starts_with('/')) pattern.erase(0, 1);
    return ::fnmatch(pattern.c_str(), below.c_str(), FNM_PATHNAME) == 0;
  });
}

}  // namespace stp::files
