// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/port_rules.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "libst/service/users.h"

namespace stp::service {
namespace {

constexpr char kForms[] =
    "write all:PORTS, user:NAME:PORTS or group:NAME:PORTS, where PORTS is one port, as 3000, or a "
    "range, as 3000-3999, up to 4294967295";

bool parse_number(std::string_view text, std::uint32_t& out) {
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, out);
  return failure == std::errc() && stop == end;
}

bool parse_ports(std::string_view text, PortRule& out) {
  const auto dash = text.find('-');
  if (!parse_number(text.substr(0, dash), out.first)) return false;
  out.last = out.first;
  if (dash != std::string_view::npos && !parse_number(text.substr(dash + 1), out.last))
    return false;
  return out.first <= out.last;
}

bool applies(const PortRule& rule, uid_t uid, std::span<const gid_t> groups) {
  switch (rule.who) {
    case PortRule::Who::kAll:
      return true;
    case PortRule::Who::kUser:
      return rule.id == uid;
    case PortRule::Who::kGroup:
      return std::find(groups.begin(), groups.end(), rule.id) != groups.end();
  }
  return false;
}

}  // namespace

bool PortRules::permit(std::uint32_t port, uid_t uid, std::span<const gid_t> groups) const {
  if (rules_.empty() || uid == 0 || uid == ::geteuid()) return true;
  return std::any_of(rules_.begin(), rules_.end(), [&](const PortRule& rule) {
    return rule.first <= port && port <= rule.last && applies(rule, uid, groups);
  });
}

std::optional<PortRule> PortRules::parse(const std::string& text, std::string& error) {
  const auto fail = [&](const std::string& what) {
    error = "'" + text + "': " + what;
    return std::nullopt;
  };
  PortRule rule;
  const auto first = text.find(':'), last = text.rfind(':');
  if (first == std::string::npos || !parse_ports(std::string_view(text).substr(last + 1), rule))
    return fail(kForms);
  const auto kind = text.substr(0, first);
  const auto name = first == last ? std::string() : text.substr(first + 1, last - first - 1);
  if (kind == "all" && first == last) return rule;
  std::optional<std::uint32_t> id;
  if (kind == "user" && !name.empty()) {
    rule.who = PortRule::Who::kUser;
    id = find_user(name);
  } else if (kind == "group" && !name.empty()) {
    rule.who = PortRule::Who::kGroup;
    id = find_group(name);
  } else {
    return fail(kForms);
  }
  if (!id) return fail("there is no " + kind + " '" + name + "' on this machine");
  rule.id = *id;
  return rule;
}

}  // namespace stp::service
