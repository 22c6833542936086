// SPDX-License-Identifier: BSD-3-Clause
// The table of operations agrees with docs/protocol.md, and the structs with the table.
#include "stp/wire/operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/markdown_table.h"

namespace stp::wire {
namespace {

using test::cells_of;
using test::trimmed;
using Row = std::vector<std::string>;

// The rows below the heading whose first cells are `heading`.
std::vector<Row> table_of(const Row& heading) {
  std::ifstream page(STP_PROTOCOL_PAGE);
  EXPECT_TRUE(page) << STP_PROTOCOL_PAGE;
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    const auto cells = cells_of(line);
    if (cells.size() >= heading.size() && std::equal(heading.begin(), heading.end(), cells.begin()))
      inside = true;
    else if (inside && cells.empty())
      break;
    else if (inside && !cells[0].starts_with("---"))
      rows.push_back(cells);
  }
  return rows;
}

// A cell begins with the field's name; what follows explains it.
std::string name_in(const std::string& cell) {
  return cell.substr(0, cell.find(' '));
}

struct Column {
  std::size_t cell;
  Word word;
};
constexpr std::array kColumns{Column{1, Word::kParam}, Column{4, Word::kMx},
                              Column{5, Word::kBufx},  Column{6, Word::kOffset},
                              Column{7, Word::kSync},  Column{8, Word::kBNum},
                              Column{9, Word::kDId},   Column{10, Word::kSId}};

// The page's names of the words that the operation uses.
std::map<Word, std::string> names_on_page(const Row& row) {
  std::map<Word, std::string> names;
  for (const auto& [cell, word] : kColumns)
    if (!row[cell].empty()) names[word] = name_in(row[cell]);
  if (names[Word::kSync] == "T_len") {
    names[Word::kTLen] = "T_len";
    names.erase(Word::kBNum);
    names.erase(Word::kSync);
  }
  std::erase_if(names, [](const auto& entry) { return entry.second.empty(); });
  return names;
}

std::map<Word, std::string> names_in_table(const Operation& operation) {
  std::map<Word, std::string> names;
  for (const auto& field : operation.fields) names[field.word] = std::string(field.name);
  return names;
}

// protocol: 3.10
TEST(Operations, HaveTheFieldsOfTheProtocolPage) {
  std::size_t found = 0;
  for (const auto& row : table_of({"op", "Param", "D_Port, D_Key"})) {
    ASSERT_EQ(row.size(), 11U) << row[0];
    std::istringstream shorts(row[0]);
    for (std::string name; std::getline(shorts, name, ',');) {
      name = trimmed(name);
      const auto at = std::ranges::find_if(
          operations(), [&](const auto& operation) { return operation.short_name == name; });
      ASSERT_NE(at, operations().end()) << name;
      ++found;
      auto on_page = names_on_page(row);
      if (at->op == Op::kNoOperation) {  // "opaque" on the page
        for (const auto& field : at->fields) EXPECT_EQ(on_page[field.word], "opaque");
        EXPECT_EQ(on_page.size(), at->fields.size());
      } else if (at->op == Op::kRequestToSend) {
        on_page[Word::kDId] = "RTR_I_id";  // "I_id of the RTR" on the page
        EXPECT_EQ(on_page, names_in_table(*at));
      } else {
        EXPECT_EQ(on_page, names_in_table(*at)) << name;
      }
    }
  }
  EXPECT_EQ(found, operations().size());
}

// protocol: 3.4, 5.15, 5.17, 6.2
TEST(Operations, HaveTheCodesNamesSlotsAndStatesOfTheProtocolPage) {
  const std::map<std::string, When> states = {
      {"§5", When::kByState}, {"open", When::kOpen}, {"draining", When::kDraining}};
  std::size_t found = 0;
  for (const auto& row : table_of({"code", "operation", "short", "Slot", "when"})) {
    ASSERT_EQ(row.size(), 11U);
    for (std::size_t at : {0U, 6U}) {
      if (row[at].empty()) continue;  // an odd number of operations
      const auto& row_of = operation(static_cast<Op>(std::stoul(row[at], nullptr, 16)));
      ASSERT_NE(row_of.short_name, nullptr) << row[at];
      EXPECT_EQ(row_of.name, row[at + 1]);
      EXPECT_EQ(row_of.short_name, row[at + 2]);
      const auto slot = row[at + 3].empty()          ? Slot::kNone
                        : row[at + 3] == "per Block" ? Slot::kPerBlock
                                                     : Slot::kOne;
      EXPECT_EQ(row_of.slot, slot) << row[at + 2];
      ASSERT_TRUE(states.contains(row[at + 4])) << row[at + 4];
      EXPECT_EQ(row_of.when, states.at(row[at + 4])) << row[at + 2];
      ++found;
    }
  }
  EXPECT_EQ(found, operations().size());
}

// protocol: 3.5
TEST(Operations, UseRejectAsTheProtocolPageSays) {
  for (const auto& row : table_of({"bit", "flag", "mark", "meaning", "used on"})) {
    if (row[1] != "Reject") continue;
    for (const auto& operation : operations()) {
      const auto list = ", " + row[4] + ",";
      const auto listed = list.find(std::string(", ") + operation.short_name + ",");
      EXPECT_EQ((operation.used_flags & flag::kReject) != 0, listed != std::string::npos)
          << operation.short_name;
    }
    return;
  }
  FAIL() << "no row for Reject";
}

TEST(Operations, StandInTheOrderOfTheirCodesAndOfTheirWords) {
  for (std::size_t i = 1; i < operations().size(); ++i)
    EXPECT_LT(operations()[i - 1].op, operations()[i].op);
  const auto place = [](Word word) { return word == Word::kTLen ? Word::kSync : word; };
  for (const auto& operation : operations())
    for (std::size_t i = 1; i < operation.fields.size(); ++i)
      EXPECT_LT(place(operation.fields[i - 1].word), place(operation.fields[i].word))
          << operation.short_name;
}

Header filled() {
  Header header;
  header.op_flags = flag::kInterrupt;
  header.param = 0x0102;
  header.mx = 0x0304;
  header.bufx = 0x05060708;
  header.offset = 0x090a0b0c;
  header.sync = 0x0d0e0f10;
  header.b_num = 0x11121314;
  header.d_id = 0x15161718;
  header.s_id = 0x191a1b1c;
  return header;
}

TEST(Operations, AStructHasTheWordsOfItsOperation) {
  const auto header = filled();
  const auto rts = decode_as<RequestToSend>(header);
  EXPECT_EQ(rts.cts_req, 0x0102);
  EXPECT_EQ(rts.max_block, 0x0304);
  EXPECT_EQ(rts.t_len, 0x0d0e0f1011121314U);
  EXPECT_EQ(rts.rtr_i_id, 0x15161718U);
  EXPECT_EQ(rts.i_id, 0x191a1b1cU);
  const auto get = decode_as<Get>(header);
  EXPECT_EQ(get.i_bufx, header.sync);
  EXPECT_EQ(get.i_offset, header.b_num);
}

// Encoding into an empty header and decoding gives the same struct, and no other fields are
// written.
template <typename T>
void comes_back() {
  const auto from = decode_as<T>(filled());
  Header header;
  header.op_flags = flag::kSendState;
  encode_to(from, header);
  EXPECT_EQ(header.op(), T::kOp);
  EXPECT_TRUE(header.has(flag::kSendState));
  EXPECT_EQ(decode_as<T>(header), from);
  const auto uses = names_in_table(operation(T::kOp));
  for (const auto& [cell, word] : kColumns) {
    const bool half = uses.contains(Word::kTLen) && (word == Word::kSync || word == Word::kBNum);
    EXPECT_EQ(word_of(header, word) != 0, uses.contains(word) || half)
        << operation(T::kOp).short_name << " cell " << cell;
  }
}

TEST(Operations, EachStructIsWrittenAsItIsRead) {
#define STP_COMES_BACK(operation, ...) comes_back<operation>();
  STP_OPERATIONS(STP_COMES_BACK)
#undef STP_COMES_BACK
}

// docs/protocol.md, 10: requests are repeated until they are answered; an RS that is asked again is
// another question.
TEST(Operations, ThoseThatAskForAnAnswer) {
  std::string answer, state;
  for (const auto& row : operations()) {
    if (row.asks == Asks::kAnswer) answer += std::string(row.short_name) + ' ';
    if (row.asks == Asks::kState) state += row.short_name;
  }
  EXPECT_EQ(answer, "RC RD RMR GET RTS RTR END ");
  EXPECT_EQ(state, "RS");
}

// Two Nodes that do the same choose other Keys, Mx and Syncs.
TEST(Operations, WhatTheirSendersChoose) {
  std::map<Own, std::string> by;
  for (const auto& row : operations()) by[row.own] += std::string(row.short_name) + ' ';
  EXPECT_EQ(by[Own::kKey], "RC CA RD DA DC ");
  EXPECT_EQ(by[Own::kMx], "MRA GET CTS ");
  EXPECT_EQ(by[Own::kSync], "RS ");
}

}  // namespace
}  // namespace stp::wire
