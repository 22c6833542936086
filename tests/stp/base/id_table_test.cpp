// SPDX-License-Identifier: BSD-3-Clause
// Untrusted programs keep ids of regions and endpoints, so an id must never name another object.
#include "stp/base/id_table.h"

#include <gtest/gtest.h>

#include <set>

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

}  // namespace
}  // namespace stp::test
