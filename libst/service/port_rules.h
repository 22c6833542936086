// SPDX-License-Identifier: BSD-3-Clause
// Who may listen where. Without a rule everybody may on every port; as soon as there is one, only
// those whom a rule names may, on the ports that it names. Root and the user of the daemon may
// always.
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

  // all:4000, user:www-data:3000-3999, group:staff:5000; a user or group by name or number.
  // nullopt: `error` says what is wrong and what would be right.
  static std::optional<PortRule> parse(const std::string& text, std::string& error);

 private:
  std::vector<PortRule> rules_;
};

}  // namespace stp::service
