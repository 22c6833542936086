// SPDX-License-Identifier: BSD-3-Clause
// The table of a Virtual Connection's states is consistent and agrees with docs/protocol.md.
#include "stp/node/connection/vc_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/markdown_table.h"

namespace stp::test {
namespace {

const std::map<VcState, std::string> kStates{
    {VcState::kConnecting, "CONNECTING"},
    {VcState::kAsked, "ASKED"},
    {VcState::kOpen, "OPEN"},
    {VcState::kClosing, "CLOSING"},
    {VcState::kBothClosing, "BOTH_CLOSING"},
    {VcState::kPeerClosing, "PEER_CLOSING"},
    {VcState::kPeerClosed, "PEER_CLOSED"},
    {VcState::kFailed, "FAILED"},
    {kVcGone, "GONE"},
};
// The columns of the page's table. The beginning of a connection and a user's decision have no
// column.
const std::map<VcEvent, std::string> kColumns{
    {VcEvent::kAnswer, "CA"},
    {VcEvent::kRefusal, "CA Reject"},
    {VcEvent::kClose, "the user closes"},
    {VcEvent::kRequest, "RD"},
    {VcEvent::kConfirmed, "DA"},
    {VcEvent::kComplete, "DC"},
    {VcEvent::kGaveUp, "gave up"},
};

using Row = std::tuple<std::string, std::string, std::string>;  // from, event, to

std::set<Row> rows_of_code() {
  std::set<Row> rows;
  for (const auto& row : kVcTransitions)
    if (const auto column = kColumns.find(row.event); column != kColumns.end())
      rows.emplace(kStates.at(row.from), column->second, kStates.at(row.to));
  return rows;
}

std::set<Row> rows_of_page() {
  std::set<Row> rows;
  std::ifstream page(STP_PROTOCOL_PAGE);
  std::vector<std::string> columns;
  for (std::string line; std::getline(page, line);) {
    const auto cells = test::cells_of(line);
    if (columns.empty()) {
      if (cells.size() > 1 && cells[0] == "state" && cells[1] == "CA") columns = cells;
      continue;
    }
    if (cells.empty()) break;
    if (cells.size() != columns.size() || cells[0] == "---") continue;
    for (std::size_t i = 1; i < cells.size(); ++i)
      if (!cells[i].empty())
        rows.emplace(cells[0].substr(0, cells[0].find(' ')), columns[i], cells[i]);
  }
  return rows;
}

// protocol: 5.2, 5.15
TEST(VcState, the_page_has_the_same_transitions) {
  EXPECT_EQ(rows_of_page(), rows_of_code());
}

TEST(VcState, every_state_ends_when_the_user_and_time_want_it) {
  // From every state, a close followed by silence leads to Gone: nothing waits for ever.
  for (unsigned s = 0; s <= static_cast<unsigned>(VcState::kFailed); ++s) {
    auto state = static_cast<VcState>(s);
    for (int step = 0; step < 4 && state != kVcGone; ++step) {
      const auto closed = next_state(kVcTransitions, state, VcEvent::kClose);
      const auto silent = next_state(kVcTransitions, state, VcEvent::kGaveUp);
      state = closed ? *closed : silent ? *silent : state;
    }
    EXPECT_EQ(state, kVcGone) << "from state " << s;
  }
}

}  // namespace
}  // namespace stp::test
