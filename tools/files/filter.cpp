// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <istream>

namespace stp::files {
namespace {

bool matches(std::string pattern, const std::string& path, const std::string& name,
             bool is_directory) {
  if (pattern.ends_with('/')) {
    if (!is_directory) return false;
    pattern.pop_back();
  }
  if (pattern.find('/') == std::string::npos)
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  if (pattern.starts_with('/')) pattern.erase(0, 1);
  return ::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
}

}  // namespace

std::vector<FilterRule> read_rules(std::istream& in, bool include) {
  std::vector<FilterRule> rules;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    const auto marked = line.starts_with("+ ") || line.starts_with("- ");
    rules.push_back({marked ? line.front() == '+' : include, marked ? line.substr(2) : line});
  }
  return rules;
}

bool Filter::leaves_out(const std::string& path_there, bool is_directory) const {
  if (rules_.empty() || path_there == root_) return false;
  const auto path =
      root_.empty() ? path_there : path_there.substr(std::min(root_.size() + 1, path_there.size()));
  const auto name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const FilterRule& each) {
    return matches(each.pattern, path, name, is_directory);
  });
  return rule != rules_.end() && !rule->include;
}

}  // namespace stp::files
