// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/name.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace stp::files {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool is_accepted(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxNameLength &&
         !name.starts_with(kTemporaryPrefix) && std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace

std::optional<std::vector<std::string>> accepted_path(std::string_view path) {
  if (path.size() > kMaxPathLength) return std::nullopt;
  std::vector<std::string> names;
  for (;;) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto name = path.substr(0, slash);
    if (!is_accepted(name)) return std::nullopt;
    names.emplace_back(name);
    if (slash == path.size()) return names;
    path.remove_prefix(slash + 1);
  }
}

std::string base_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return path == "." || path == ".." ? std::string() : std::string(path);
}

std::string temporary_name() {
  static std::atomic<unsigned> number{0};
  return std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "." +
         std::to_string(number++) + ".part";
}

}  // namespace stp::files
