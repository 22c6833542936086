// SPDX-License-Identifier: BSD-3-Clause
// Untrusted programs keep ids of regions and endpoints, so an id must never name another object.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

#include "stp/base/id_table.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

struct Thing {
  std::uint64_t id = 0;
};
using Things = IdTable<Thing>;

// One more object than an id can number: its place would overlap the serial number, and two objects
// would have the same id.
TEST(IdTable, is_full_before_two_ids_could_be_the_same) {
  Things things(~std::size_t{0});
  auto* const first = things.add(std::make_unique<Thing>());
  auto* last = first;
  while (auto* const more = things.add(std::make_unique<Thing>())) {
    ASSERT_GT(more->id, last->id);
    last = more;
    ASSERT_LE(things.size(), Things::kMost);
  }
  EXPECT_EQ(things.size(), Things::kMost);
  EXPECT_EQ(things.find(first->id), first);
  EXPECT_EQ(things.find(last->id), last);
}

TEST(IdTable, the_id_of_what_has_gone_names_nothing_ever_after) {
  Things things(4);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    auto* const thing = things.add(std::make_unique<Thing>());
    ASSERT_NE(thing, nullptr);
    ASSERT_TRUE(seen.insert(thing->id).second);
    things.remove(thing->id);
  }
  auto* const live = things.add(std::make_unique<Thing>());
  for (const auto id : seen) {
    ASSERT_EQ(things.find(id), nullptr);
    things.remove(id);
  }
  EXPECT_EQ(things.find(live->id), live);
}

TEST(IdTable, a_place_rests_while_others_are_free) {
  Things things(3);
  constexpr auto kPlace = Things::kMost - 1;
  const auto add = [&] { return things.add(std::make_unique<Thing>())->id; };
  const auto a = add(), b = add(), c = add();
  things.remove(b);
  things.remove(a);
  EXPECT_EQ(add() & kPlace, b & kPlace);
  EXPECT_EQ(add() & kPlace, a & kPlace);
  EXPECT_NE(things.find(c), nullptr);
}

TEST(IdTable, adds_nothing_once_its_serial_numbers_are_used_up) {
  Things things(4, Things::kLastSerial);
  auto* const last = things.add(std::make_unique<Thing>());
  ASSERT_NE(last, nullptr);
  const auto id = last->id;
  things.remove(id);
  EXPECT_EQ(things.add(std::make_unique<Thing>()), nullptr);
  EXPECT_EQ(things.find(id), nullptr);
}

class Tables : public TwoNodes {
 protected:
  Tables()
      : TwoNodes(NodeConfig{
            .mac = {}, .max_stu = 13, .vlan = {}, .max_endpoints = 2, .max_regions = 3}) {}

  static constexpr unsigned kBufsize = 12;
  Buffers memory{kBufsize, 8};

  int map(EndpointId endpoint, std::uint32_t bufx, RegionId& out) {
    const auto piece = memory.all().first(std::size_t{1} << kBufsize);
    return a.node.map(endpoint, Direction::kReceive, bufx, {&piece, 1}, out);
  }
};

TEST_F(Tables, refuse_at_their_bound_and_take_again_what_has_gone) {
  const auto first = a.open({.bufsize = kBufsize}), second = a.open({.bufsize = kBufsize});
  EndpointId none = kNoneId;
  EXPECT_EQ(a.node.open_endpoint({.bufsize = kBufsize}, none), -ENOSPC);
  RegionId attackers[2]{}, victim = kNoneId, more = kNoneId;
  ASSERT_EQ(map(first, 0, attackers[0]), 0);
  ASSERT_EQ(map(second, 0, victim), 0);
  ASSERT_EQ(map(first, 1, attackers[1]), 0);
  EXPECT_EQ(map(first, 2, more), -ENOSPC);

  // A refusal takes no place. A freed place is used for another id.
  ASSERT_EQ(a.node.unmap(attackers[0]), 0);
  ASSERT_EQ(map(first, 2, more), 0);
  EXPECT_NE(more, attackers[0]);
  EXPECT_EQ(a.node.unmap(attackers[0]), -EBADF);
  std::uint16_t mx = 0;
  EXPECT_EQ(a.node.alloc_mx(attackers[0], kNoneId, permit::kAll, mx), -EBADF);
  EXPECT_EQ(a.node.alloc_mx(victim, kNoneId, permit::kAll, mx), 0);
  EXPECT_EQ(map(second, 0, none), -ENOSPC);
}

TEST_F(Tables, a_token_that_is_given_back_twice_is_passed_over) {
  const auto endpoint = a.open({.bufsize = kBufsize});
  RegionId region = kNoneId;
  ASSERT_EQ(map(endpoint, 0, region), 0);
  a.node.transmitted({.vc = 0x10001, .region = region});
  ASSERT_EQ(a.node.unmap(region), 0);
  a.node.transmitted({.vc = 0x10001, .region = region});
  EXPECT_EQ(a.node.close_endpoint(endpoint), 0);
}

TEST(NumberSet, finds_the_next_member_and_the_next_gap_at_every_border) {
  const auto set = std::make_unique<NumberSet>();
  EXPECT_EQ(set->next(0), std::nullopt);
  EXPECT_EQ(set->next_missing(65'535), 65'535U);
  for (const int each : {0, 63, 64, 4'095, 4'096, 65'535}) {
    const auto number = static_cast<std::uint16_t>(each);
    set->insert(number);
    EXPECT_EQ(set->next(number), number);
    EXPECT_EQ(set->next(0), number) << "the others are gone";
    EXPECT_EQ(set->next(std::uint32_t{number} + 1), std::nullopt);
    EXPECT_EQ(set->next_missing(number),
              number == 65'535 ? std::nullopt : std::optional<std::uint32_t>(number + 1U));
    set->erase(number);
    set->erase(number);
  }
  EXPECT_EQ(set->next(0), std::nullopt);
  EXPECT_EQ(set->next(65'536), std::nullopt);
  EXPECT_EQ(set->next_missing(65'536), std::nullopt);
}

TEST(NumberSet, a_full_one_has_no_gap) {
  const auto set = std::make_unique<NumberSet>();
  for (std::uint32_t i = 0; i < 65'536; ++i) set->insert(static_cast<std::uint16_t>(i));
  EXPECT_EQ(set->next_missing(0), std::nullopt);
  set->erase(40'000);
  EXPECT_EQ(set->next_missing(0), 40'000U);
  EXPECT_EQ(set->next_missing(40'001), std::nullopt);
  EXPECT_EQ(set->next(40'000), 40'001U);
}

TEST(NumberSet, holds_the_same_numbers_as_a_set) {
  const auto numbers = std::make_unique<NumberSet>();
  std::set<std::uint32_t> set;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<std::uint16_t>(random() % 10 == 0 ? random() : random() % 200);
    if (random() % 2 == 0) {
      numbers->insert(number);
      set.insert(number);
    } else {
      numbers->erase(number);
      set.erase(number);
    }
    const auto from = static_cast<std::uint32_t>(random() % 65'536);
    const auto next = set.lower_bound(from);
    ASSERT_EQ(numbers->next(from), next == set.end() ? std::nullopt : std::optional(*next)) << i;
    auto gap = from;
    while (set.contains(gap)) ++gap;
    ASSERT_EQ(numbers->next_missing(from), gap == 65'536 ? std::nullopt : std::optional(gap)) << i;
  }
}

}  // namespace
}  // namespace stp::test
