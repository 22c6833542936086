// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/check/rules.h"

#include <array>

namespace stp::replay {
namespace {

constexpr std::array kRules{
#define STP_REPLAY_RULE_TEXT(id, section, name, certainty, text) \
  RuleText{Rule::k##id, section, name, Certainty::certainty, text},
    STP_REPLAY_RULES(STP_REPLAY_RULE_TEXT)
#undef STP_REPLAY_RULE_TEXT
};

}  // namespace

std::span<const RuleText> rules() {
  return kRules;
}

const RuleText& text_of(Rule rule) {
  return kRules.at(static_cast<std::size_t>(rule));
}

}  // namespace stp::replay
