// SPDX-License-Identifier: BSD-3-Clause
// strangers_test.cpp has what a requester sees of it.
#include "stp/node/connection/newcomers.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

class NewcomersTest : public ::testing::Test {
 protected:
  static constexpr Time kMade = 1'000;

  // Makes as many unproven connections as one listener has, none accepted by the user.
  void SetUp() override {
    for (std::uint16_t i = 1; i <= Unproven::kOfListener; ++i) {
      auto& vc = with.open(i);
      vc.peer_mac = mac(i);
      vc.heard = kMade;
      endpoint.backlog.push_back(vc);
      ++endpoint.in_backlog;
      ++endpoint.vcs;
      newcomers.add(vc, kMade);
    }
  }
  static MacAddr mac(std::uint64_t number) { return MacAddr::from_u64(0x020000000000 + number); }

  Mechanisms with;
  Endpoint& endpoint = with.vcs.endpoint;
  stp::Strangers strangers{PortShare{}};
  KnownPeers peers;
  Dials dials{{with.common, with.vcs.table, with.departures, with.timers}};
  VcEndings endings{{with.common, with.vcs.table, with.turns, with.wake_ups, with.departures,
                     with.timers, with.pacing, with.memory, with.tidying, peers, strangers, dials}};
  Newcomers newcomers{{with.common, with.vcs.table, strangers, endings, with.states}};
};

// protocol: 5.34
TEST_F(NewcomersTest, a_few_are_taken_at_their_word_and_one_more_once_one_has_proved_itself) {
  EXPECT_TRUE(newcomers.must_prove(endpoint, mac(99), kMade));
  with.vcs.table.at(3)->heard = kMade + 1;
  const auto later = kMade + Unproven::kLookInterval;
  EXPECT_FALSE(newcomers.must_prove(endpoint, mac(99), later));
}

// protocol: 5.40
TEST_F(NewcomersTest, a_channel_is_reclaimed_only_from_one_that_was_asked_and_stayed_silent) {
  EXPECT_FALSE(newcomers.reclaim(endpoint, kMade));
  EXPECT_TRUE(with.sent().empty());
  const auto asked = kMade + Unproven::kSilence;
  ASSERT_FALSE(newcomers.reclaim(endpoint, asked)) << "they have time to answer";
  EXPECT_EQ(with.sent().size(), std::size_t{Unproven::kOfListener});
  with.vcs.table.at(1)->heard = asked + 1;
  EXPECT_TRUE(newcomers.reclaim(endpoint, asked + Unproven::kSilence));
  EXPECT_NE(with.vcs.table.at(1), nullptr) << "it has answered";
  EXPECT_EQ(with.vcs.table.at(2), nullptr) << "the oldest of the others";
  EXPECT_EQ(with.vcs.table.count(), Unproven::kOfListener - 1);
  EXPECT_EQ(with.sent(), std::vector{wire::Op::kRequestDisconnect});
  EXPECT_EQ(with.common.counters.get(Counter::kUnprovenEnded), 1U);
}

}  // namespace
}  // namespace stp::test
