// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/session.h"

#include "tests/managed/two_sessions.h"

namespace stp::managed::regions_test {
namespace {

using State = PeerRegion::State;

constexpr std::uint32_t kKey = 77;
constexpr std::uint64_t kBase = 0x1000, kLength = 4096;

class Regions : public TwoSessions {
 protected:
  Sequencer& user() { return a.session->sequencer; }
  Sequencer& owner() { return b.session->sequencer; }
  // B serves what A has asked for.
  void serve() {
    carry(a, b);
    for (const auto& c : b.completions())
      served.serve(owner(), c, {5, {}, kLength}, {.base = kBase, .access = STM_REMOTE_WRITE});
    answer();
  }
  void answer() {
    carry(b, a);
    for (const auto& c : a.completions()) {
      if (c.kind == Completion::Kind::kRegion) used.on_answer(c);
      if (c.kind == Completion::Kind::kRevoked) used.on_revoked(c.region);
    }
  }
  State state(std::uint32_t key = kKey) { return used.find(user(), key)->state.state(); }

  PeerRegions used;
  ServedRegions served;
};

TEST_F(Regions, TheFirstUseOfAKeyAsksThePeer) {
  auto* const region = used.find(user(), kKey);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->state.state(), State::kAsked);
  EXPECT_EQ(used.find(user(), kKey), region) << "it is asked for once";
  serve();
  EXPECT_EQ(region->state.state(), State::kOpen);
  EXPECT_EQ(region->region.base, kBase);
  EXPECT_EQ(region->region.length, kLength);
  EXPECT_EQ(region->region.access, unsigned{STM_REMOTE_WRITE});
  EXPECT_TRUE(served.serves(kKey));
  EXPECT_FALSE(served.serves(kKey + 1));
}

TEST_F(Regions, ARefusedRegionIsClosedWithEacces) {
  used.find(user(), kKey);
  carry(a, b);
  for (const auto& c : b.completions()) owner().refuse(c.request);
  answer();
  EXPECT_EQ(state(), State::kClosed);
  EXPECT_EQ(used.find(user(), kKey)->status, -EACCES);
}

TEST_F(Regions, TheKeysOfTheLibraryAreNotAskedFor) {
  EXPECT_EQ(state(0), State::kClosed);
  EXPECT_EQ(state(kEagerKey), State::kClosed);
  EXPECT_EQ(used.find(user(), kEagerKey)->status, -EACCES);
  EXPECT_TRUE(carry(a, b).empty());
}

TEST_F(Regions, ThePeerLearnsThatARegionIsRevoked) {
  used.find(user(), kKey);
  used.find(user(), kKey + 1);
  serve();
  served.revoke(owner(), kKey);
  EXPECT_FALSE(served.serves(kKey));
  EXPECT_TRUE(served.serves(kKey + 1));
  answer();
  EXPECT_EQ(state(), State::kClosed);
  EXPECT_EQ(used.find(user(), kKey)->status, -EACCES);
  EXPECT_EQ(state(kKey + 1), State::kOpen);
}

TEST_F(Regions, OnlyARegionWithoutOperationsGivesWayToANewOne) {
  for (std::uint32_t i = 0; i < PeerRegions::kMost; ++i) ++used.find(user(), kKey + i)->operations;
  constexpr auto kNew = kKey + static_cast<std::uint32_t>(PeerRegions::kMost);
  EXPECT_EQ(used.find(user(), kNew), nullptr) << "none has an answer yet";
  serve();
  EXPECT_EQ(used.find(user(), kNew), nullptr) << "all are in use";
  --used.find(user(), kKey + 9)->operations;  // found last
  ASSERT_NE(used.find(user(), kNew), nullptr);
  EXPECT_EQ(carry(a, b), (std::vector{wire::Op::kEnd, wire::Op::kRequestMemoryRegion}));
  carry(b, a);  // B confirms
  for (const auto& c : b.completions())
    if (c.kind == Completion::Kind::kEnded) served.on_ended(c.request);
  EXPECT_FALSE(served.serves(kKey + 9));
  EXPECT_TRUE(served.serves(kKey + 8));
  EXPECT_EQ(used.find(user(), kKey + 9), nullptr) << "it has given way, and all others are in use";
}

TEST(PeerRegionState, WhatIsClosedStaysClosed) {
  for (const auto state : {State::kAsked, State::kOpen, State::kClosed}) {
    EXPECT_TRUE(leads(kPeerRegionTransitions, state, State::kClosed));
    EXPECT_EQ(leads(kPeerRegionTransitions, State::kClosed, state), state == State::kClosed);
  }
}

}  // namespace
}  // namespace stp::managed::regions_test
