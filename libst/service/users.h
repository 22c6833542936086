// SPDX-License-Identifier: BSD-3-Clause
// Parses users and groups, given by name or by number. For start-up and reloads only: looking up a
// name may be slow.
#pragma once

#include <grp.h>
#include <pwd.h>
#include <sys/types.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

namespace stp::service {

inline std::optional<std::uint32_t> parse_id(const std::string& text) {
  std::uint32_t id = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, id);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return id;
}

inline std::optional<uid_t> find_user(const std::string& name) {
  if (const auto* const entry = ::getpwnam(name.c_str())) return entry->pw_uid;
  return parse_id(name);
}

inline std::optional<gid_t> find_group(const std::string& name) {
  if (const auto* const entry = ::getgrnam(name.c_str())) return entry->gr_gid;
  return parse_id(name);
}

}  // namespace stp::service
