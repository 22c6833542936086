// SPDX-License-Identifier: BSD-3-Clause
// Decides who may listen on which port. Without rules, every user may listen on every port. With at
// least one rule, a user may listen only on ports that a rule gives to it. Root and the user of the
// daemon may listen on every port.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stp::service {

struct PortRule {
  enum class Who { kAll, kUser, kGroup };
  Who who = Who::kAll;
  std::uint32_t id = 0;  // a uid or gid
  std::uint32_t first = 0, last = 0;
};

class PortRules {
 public:
  PortRules() = default;
  explicit PortRules(std::vector<PortRule> rules) : rules_(std::move(rules)) {}

  [[nodiscard]] bool permit(std::uint32_t port, uid_t uid, std::span<const gid_t> groups) const;

  // Parses "all:4000", "user:www-data:3000-3999" or "group:staff:5000"; a user or group is a name
  // or a number. nullopt: `error` has the text and what to write.
  static std::optional<PortRule> parse(const std::string& text, std::string& error);

 private:
  std::vector<PortRule> rules_;
};

}  // namespace stp::service
