// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/names_there.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>

#include "stp/base/printable.h"
#include "tools/files/name.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

// Without --into.
std::string own_name(const Sending& sending, const std::string& path) {
  if (path == "-") return sending.name.value_or("stdin");
  return sending.name && !has_stream(sending) ? *sending.name : base_name(path);
}

// The first names that the argument gets. A directory that cannot be read has none; the walk tells.
std::vector<std::string> first_names(const Sending& sending, const std::string& path) {
  const auto name = own_name(sending, path);
  if (!name.empty() || !sending.trees) return {name};
  std::vector<std::string> names;
  const Filter filter(sending.rules, "");
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    auto below = entry->path().filename().string();
    std::error_code unknown;
    const auto is_directory =
        entry->symlink_status(unknown).type() == std::filesystem::file_type::directory;
    if (!filter.leaves_out(below, is_directory)) names.push_back(std::move(below));
  }
  return names;
}

std::string title(const std::string& path) {
  return path == "-" ? "standard input" : printable(path);
}

}  // namespace

bool has_stream(const Sending& sending) {
  return std::find(sending.paths.begin(), sending.paths.end(), "-") != sending.paths.end();
}

std::string name_there(const Sending& sending, const std::string& path) {
  const auto name = own_name(sending, path);
  if (sending.into.empty() || name.empty()) return sending.into + name;
  return sending.into + "/" + name;
}

bool overlap(const std::vector<std::string>& paths) {
  std::vector<std::string> places;
  for (const auto& path : paths) {
    std::error_code unknown;  // the walk tells
    const auto place = std::filesystem::canonical(path, unknown).string();
    if (path != "-" && !unknown) places.push_back(place + "/");
  }
  // What lies below a place comes next to it.
  std::sort(places.begin(), places.end());
  const auto is_below = [](const std::string& above, const std::string& place) {
    return place.starts_with(above);
  };
  return std::adjacent_find(places.begin(), places.end(), is_below) != places.end();
}

void check_names(const Sending& sending) {
  if (sending.paths.size() < 2) return;
  std::map<std::string, const std::string*> from;
  for (const auto& path : sending.paths) {
    for (const auto& name : first_names(sending, path)) {
      const auto [place, is_new] = from.emplace(name, &path);
      if (!is_new)
        throw std::runtime_error(title(*place->second) + " and " + title(path) +
                                 " would both arrive as " + printable(name) +
                                 "; send one of them by itself, under another name (--name)");
    }
  }
}

}  // namespace stp::files
