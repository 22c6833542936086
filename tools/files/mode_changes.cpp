// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/mode_changes.h"

#include <algorithm>
#include <charconv>

namespace stp::files {
namespace {

constexpr std::uint16_t kAllBits = 0777, kExecute = 0111;

std::uint16_t bits_of_who(char who) {
  switch (who) {
    case 'u':
      return 0700;
    case 'g':
      return 0070;
    case 'o':
      return 0007;
    default:
      return who == 'a' ? kAllBits : std::uint16_t{0};
  }
}

std::uint16_t bits_of_permission(char permission) {
  switch (permission) {
    case 'r':
      return 0444;
    case 'w':
      return 0222;
    default:
      return permission == 'x' ? kExecute : std::uint16_t{0};
  }
}

}  // namespace

std::optional<ModeChanges::Change> ModeChanges::parse_change(std::string_view text) {
  Change change;
  if (text.starts_with('D') || text.starts_with('F')) {
    change.directories = text.starts_with('D');
    change.files = !change.directories;
    text.remove_prefix(1);
  }
  unsigned octal = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, octal, 8);
  if (error == std::errc()) {
    if (stop != end || octal > kAllBits) return std::nullopt;
    change.bits = static_cast<std::uint16_t>(octal);
    return change;
  }
  std::uint16_t who = 0;
  for (; !text.empty() && bits_of_who(text.front()) != 0; text.remove_prefix(1))
    who = static_cast<std::uint16_t>(who | bits_of_who(text.front()));
  if (who != 0) change.who = who;
  constexpr std::string_view kOperations = "+-=";
  if (text.empty() || kOperations.find(text.front()) == std::string_view::npos) return std::nullopt;
  change.operation = text.front();
  for (text.remove_prefix(1); !text.empty(); text.remove_prefix(1)) {
    const auto bits = bits_of_permission(text.front());
    if (text.front() == 'X')
      change.execute_if_any = true;
    else if (bits == 0)
      return std::nullopt;
    change.bits = static_cast<std::uint16_t>(change.bits | bits);
  }
  return change;
}

std::optional<ModeChanges> ModeChanges::parse(std::string_view text) {
  ModeChanges changes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto change = parse_change(text.substr(begin, end - begin));
    if (!change) return std::nullopt;
    changes.changes_.push_back(*change);
    begin = end + 1;
  }
  return changes;
}

std::uint16_t ModeChanges::apply(std::uint16_t mode, bool is_directory) const {
  unsigned result = mode & kAllBits;
  for (const auto& change : changes_) {
    if (!(is_directory ? change.directories : change.files)) continue;
    const auto execute = change.execute_if_any && (is_directory || (result & kExecute) != 0);
    const auto bits = (change.bits | (execute ? kExecute : 0U)) & change.who;
    if (change.operation == '+')
      result |= bits;
    else if (change.operation == '-')
      result &= ~bits;
    else
      result = (result & ~unsigned{change.who}) | bits;
  }
  return static_cast<std::uint16_t>(result);
}

}  // namespace stp::files
