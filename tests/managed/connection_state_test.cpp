// SPDX-License-Identifier: BSD-3-Clause
// The table of a connection's states is consistent and agrees with docs/managed.md.
#include "libst/managed/connection_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/markdown_table.h"

namespace stp::managed {
namespace {

using State = ConnectionState;
using Event = ConnectionEvent;

constexpr const char* kStates[] = {"IDLE",      "CONNECTING", "ASKING",    "EXPECTED",
                                   "REQUESTED", "ACCEPTING",  "REJECTING", "UP",
                                   "DRAINING",  "CLOSING",    "ENDING",    "ENDED"};
constexpr const char* kEvents[] = {"connect", "expect", "opened", "request",
                                   "accept",  "reject", "agreed", "disconnect",
                                   "drained", "over",   "let_go"};
static_assert(std::size(kStates) == static_cast<std::size_t>(State::kEnded) + 1);
static_assert(std::size(kEvents) == static_cast<std::size_t>(Event::kLetGo) + 1);

std::string name_of(State state) {
  return kStates[static_cast<std::size_t>(state)];
}
std::string name_of(Event event) {
  return kEvents[static_cast<std::size_t>(event)];
}

using Row = std::tuple<std::string, std::string, std::string>;  // from, event, to

std::set<Row> rows_of_code() {
  std::set<Row> rows;
  for (const auto& row : kConnectionTransitions)
    rows.emplace(name_of(row.from), name_of(row.event), name_of(row.to));
  return rows;
}

// A row without a state belongs to the state above. "each of these" means all states above.
std::set<Row> rows_of_page() {
  std::set<Row> rows;
  std::ifstream page(MANAGED_PAGE);
  std::string line;
  while (std::getline(page, line) && line != "## The states of a connection") {
  }
  std::vector<std::string> above;
  while (std::getline(page, line) && !line.starts_with("## ")) {
    const auto cells = test::cells_of(line);
    if (cells.size() != 4 || cells[0] == "state" || cells[0] == "---") continue;
    const bool each = cells[0] == "each of these";
    if (!each && !cells[0].empty()) above.push_back(cells[0]);
    if (cells[2].empty()) continue;
    const auto event = cells[2].substr(0, cells[2].find(':'));
    for (const auto& state : above)
      if (each || state == above.back()) rows.emplace(state, event, cells[3]);
  }
  return rows;
}

TEST(ConnectionState, each_state_is_reached_from_the_first_and_leads_to_the_last) {
  for (std::size_t i = 0; i < std::size(kStates); ++i) {
    const auto state = static_cast<State>(i);
    EXPECT_TRUE(leads(kConnectionTransitions, State::kIdle, state)) << name_of(state);
    EXPECT_TRUE(leads(kConnectionTransitions, state, State::kEnded)) << name_of(state);
  }
}

TEST(ConnectionState, whatever_is_over_never_comes_back) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(State::kEnding); ++i) {
    const auto state = static_cast<State>(i);
    EXPECT_EQ(next_state(kConnectionTransitions, state, Event::kOver), State::kEnding)
        << name_of(state);
    EXPECT_FALSE(leads(kConnectionTransitions, State::kEnding, state)) << name_of(state);
    EXPECT_FALSE(leads(kConnectionTransitions, State::kEnded, state)) << name_of(state);
  }
}

TEST(ConnectionState, the_page_has_the_same_transitions) {
  EXPECT_EQ(rows_of_page(), rows_of_code());
}

}  // namespace
}  // namespace stp::managed
