// SPDX-License-Identifier: BSD-3-Clause
// Lanes of FI_EP_RDM: what peers do with one that they are lent, and what they say of one that they
// lend. And the places of those who send.
#include "libst/libfabric/rdm/landing.h"

#include <sys/resource.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/libfabric/rdm_stranger.h"

namespace stp::test::rdm_landing_test {
namespace {

using fi::OfHost;
using fi::RxBuffer;
using fi::rdm::Buffers;
using fi::rdm::kMostConnections;
using fi::rdm::LaneMemory;
using fi::rdm::Lanes;
using fi::rdm::Places;
using namespace rdm_stranger;

class RdmLane : public RdmPeer {
 protected:
  // What a stranger that has a lane sends ends its connection.
  void expect_lane_ends(const std::array<std::uint64_t, 4>& header, std::size_t size) {
    ASSERT_EQ(stranger_.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
    stranger_.borrow_lane();
    stranger_.send(kLaned, header, size);
    EXPECT_EQ(stranger_.ended(), -ECONNRESET);
  }
  // What `a` sends to the stranger: a message of that length.
  stm_event_t sent(std::size_t length) {
    const std::vector<char> bytes(length);
    EXPECT_EQ(fi_tsend(a_->ep.get(), bytes.data(), length, nullptr, to_, 1, nullptr), 0);
    const auto told = stranger_.next();
    EXPECT_EQ(told.kind, STM_RECEIVE);
    stranger_.post();
    return told;
  }
  // The stranger lends `a` a lane, with those flags.
  void lend_lane(std::uint32_t flags) {
    to_ = a_->insert(stranger_.listen());
    ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to_, 1, nullptr), 0);
    stranger_.accept();
    EXPECT_EQ(stranger_.next().kind, STM_RECEIVE);
    stranger_.post();
    stranger_.lend_lane(flags);
    while (sent(5000).tag == kEager) {  // until the endpoint knows of it
    }
  }

  fi_addr_t to_ = FI_ADDR_UNSPEC;
};

TEST_F(RdmLane, AMessageInALaneThatWasNotLentEndsTheConnection) {
  expect_broken_off(kLaned, head(1, 5000, 0, 1), kHead + kLaneTail);
}
TEST_F(RdmLane, AMessageInALaneAtAnotherPlaceEndsTheConnection) {
  expect_lane_ends(head(1, 5000, 1, 1), kHead + kLaneTail);
}
TEST_F(RdmLane, AMessageInALaneAtNoPlaceEndsTheConnection) {
  expect_lane_ends(head(1, 5000, 272, 1), kHead + kLaneTail);
}
TEST_F(RdmLane, AMessageTooLongForALaneEndsTheConnection) {
  expect_lane_ends(head(1, 4 * kPart + 1, 0, 1), kHead + kLaneTail);
}
TEST_F(RdmLane, AMessageTooShortForALaneEndsTheConnection) {
  expect_lane_ends(head(1, 4048, 0, 1), kHead + kLaneTail);
}
TEST_F(RdmLane, AMessageInALaneWithOtherThanItsLastBytesEndsTheConnection) {
  expect_lane_ends(head(1, 5000, 0, 1), kHead + kLaneTail - 1);
}

TEST_F(RdmLane, AMessageInALaneWithAPartOfItsRestEndsTheConnection) {
  expect_lane_ends(head(1, 5000, 0, 1), kHead + kLaneTail + 903);
}
TEST_F(RdmLane, AMessageInALaneWithARestThatIsTooLongEndsTheConnection) {
  expect_lane_ends(head(1, 4096 + 4041, 0, 1), kHead + kLaneTail + 4041);
}

// What is behind its whole pages.
TEST_F(RdmLane, TheRestOfAMessageComesWithItsHeader) {
  constexpr std::size_t kPut = 4096, kLength = 5000;
  ASSERT_EQ(stranger_.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
  stranger_.borrow_lane();
  std::vector<char> got(kLength);
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), kLength, nullptr, FI_ADDR_UNSPEC, 7, 0, &got), 0);
  stranger_.put(kPut);
  stranger_.send(kLaned, head(7, kLength, 0, 1), kHead + kLaneTail + (kLength - kPut));
  EXPECT_EQ(b_->completed(b_->rx.get()).len, kLength);
  EXPECT_EQ(std::string(got.begin(), got.end()),
            std::string(kPut - kLaneTail, 'r') + std::string(kLaneTail + kLength - kPut, 't'));
}
TEST_F(RdmLane, WhoTakesRestsIsSentThemWithHeaders) {
  lend_lane(kRests);
  EXPECT_EQ(sent(5000).length, kHead + kLaneTail + 904);
  EXPECT_EQ(sent(4096 + 4040).length, kHead + kLaneTail + 4040);
  EXPECT_EQ(sent(4096 + 4041).length, kHead + kLaneTail) << "it would be no short message";
  EXPECT_EQ(sent(8192).length, kHead + kLaneTail);
  EXPECT_EQ(sent(4090).length, kHead + kLaneTail) << "it has no whole page";
}
// Of an older version.
TEST_F(RdmLane, WhoTakesNoRestsIsSentHeadersAlone) {
  lend_lane(0);
  EXPECT_EQ(sent(5000).length, kHead + kLaneTail);
}

// The bytes may come after the header: until then neither this message nor the next is there.
TEST_F(RdmLane, AMessageInALaneWaitsForItsBytesAndTheNextOneForIt) {
  constexpr std::size_t kLength = 5000;
  ASSERT_EQ(stranger_.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
  stranger_.borrow_lane();
  std::vector<char> got(kLength), next(kLength);
  for (auto* const each : {&got, &next})
    ASSERT_EQ(fi_trecv(b_->ep.get(), each->data(), kLength, nullptr, FI_ADDR_UNSPEC, 7, 0, each),
              0);
  stranger_.send(kLaned, head(7, kLength, 0, 1), kHead + kLaneTail);
  stranger_.send(kEager, head(7, 10, 0, 1), kHead + 10);
  send_early("others", 8);
  EXPECT_EQ(receive(next, 8).len, 6U);  // others do not wait
  stranger_.put(kLength);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &got);
  EXPECT_EQ(std::string(got.begin(), got.end() - kLaneTail), std::string(kLength - kLaneTail, 'r'));
  EXPECT_EQ(std::string(got.end() - kLaneTail, got.end()), "tttttttt");  // behind the header
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &next);
}

// What it has told of and not put is lost with it.
TEST_F(RdmLane, APeerThatEndsBeforeItsBytesHaveComeLeavesNothing) {
  {
    Stranger other;
    other.progress = stranger_.progress;
    ASSERT_EQ(other.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
    other.borrow_lane();
    other.send(kLaned, head(7, 5000, 0, 1), kHead + kLaneTail);
    await_message(1);
  }
  std::vector<char> got(5000);
  send_early("whole", 7);
  EXPECT_EQ(receive(got, 7).len, 5U);
}

// Its receiver looks again when the peer has gone already.
TEST_F(RdmLane, AMessageWhoseBytesCameBeforeItsPeerLeftIsReceived) {
  constexpr std::size_t kLength = 5000;
  std::vector<char> got(kLength);
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), kLength, nullptr, FI_ADDR_UNSPEC, 7, 0, &got), 0);
  ASSERT_EQ(stranger_.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
  stranger_.borrow_lane();
  stranger_.send(kLaned, head(7, kLength, 0, 1), kHead + kLaneTail);
  while (stranger_.outstanding() != 0) stranger_.look(1);
  stranger_.look(1);
  stranger_.progress = {};
  stranger_.put(kLength);
  stranger_.leave();
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &got);
}

// So the memory of the lanes is bounded.
TEST_F(RdmLane, TheFirstPeersGetLongLanesAndOthersShortOnes) {
  std::array<Stranger, 5> peers;
  for (auto& each : peers) {
    each.progress = stranger_.progress;
    ASSERT_EQ(each.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
    each.borrow_lane();
    EXPECT_EQ(each.borrowed(), &each == &peers.back() ? kShortLane : kLaneBytes);
  }
}

// The provider looks for bytes that have not come yet, less often the longer they have not come.
TEST_F(RdmLane, BytesThatNeverComeWakeTheirReceiverSeldom) {
  ASSERT_EQ(stranger_.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
  stranger_.borrow_lane();
  std::vector<char> got(5000);
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 7, 0, &got), 0);
  stranger_.send(kLaned, head(7, got.size(), 0, 1), kHead + kLaneTail);
  send_early("the header has come", 8);
  std::vector<char> other(100);
  receive(other, 8);
  const auto sleeps = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* made = nullptr;
  ASSERT_EQ(fi_cntr_open(b_->domain.get(), &attr, &made, nullptr), 0);
  const Fid<fid_cntr> counter(made);
  const auto before = sleeps();
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 500), -FI_ETIMEDOUT);
  EXPECT_LT(sleeps() - before, 150);
  stranger_.put(got.size());
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &got);
}

// Where the lane has no room, a message longer than a buffer is announced.
TEST_F(RdmLane, WhatALaneHasNoRoomForIsAnnounced) {
  lend_lane(kRests);
  for (const auto kind : {kLaned, kLaned, kLaned, kAnnounced, kAnnounced})
    EXPECT_EQ(sent(4 * kPart).tag, kind);
  EXPECT_EQ(sent(kPart).tag, kLaned) << "its 5 pages are left";
}

// A peer of an older version breaks off what it does not know.
TEST_F(RdmLane, WhoDoesNotKnowLanesIsLentNone) {
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.post();
  std::vector<char> got(5000);
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 2, 0, &got), 0);
  stranger_.send(kEager, head(1, 5000, 0, 1), kHead + 5000);
  stranger_.send(kAnnounced, head(2, 100, 1, 1), kHead + kTail);
  auto event = stranger_.next();
  if (event.kind == STM_READ_REQUEST) event = stranger_.next();
  EXPECT_EQ(event.kind, STM_RECEIVE);
  EXPECT_EQ(event.tag, kPull);
}

TEST_F(RdmLane, ALaneThatIsNotWholePagesEndsTheConnection) {
  expect_lender_ends(kLane, head(0, kLaneBytes + 8, 1, 0));
}
TEST_F(RdmLane, ALaneTooShortForAMessageEndsTheConnection) {
  expect_lender_ends(kLane, head(0, 16 * 4096, 1, 0));
}
TEST_F(RdmLane, ALaneLongerThanAllMessagesEndsTheConnection) {
  expect_lender_ends(kLane, head(0, (std::uint64_t{1} << 32) + 4096, 1, 0));
}
TEST_F(RdmLane, ALaneWithoutAKeyEndsTheConnection) {
  expect_lender_ends(kLane, head(0, kLaneBytes, 0, 0));
}
TEST_F(RdmLane, FreeingALaneThatWasNotLentEndsTheConnection) {
  expect_lender_ends(kFreed, head(0, 0, 0, 0));
}

// ---- places ----

class RdmPlaces : public testing::Test {
 protected:
  static constexpr std::size_t kKept = 1'000;

  // So many connections of that host are made, as far as there are places.
  std::size_t connect(const std::string& host, std::size_t count) {
    std::size_t made = 0;
    for (const auto has = places.of(host); made < count && places.is_free(*has, all); ++made) {
      ++has->connections;
      ++all.connections;
      held.push_back(has);
    }
    return made;
  }

  Places places{kKept};
  OfHost all;
  std::vector<std::shared_ptr<OfHost>> held;  // as connections do
};

TEST_F(RdmPlaces, OneHostLeavesSomeToOthers) {
  EXPECT_EQ(connect("a", 2'000), kMostConnections);
  EXPECT_EQ(connect("b", 2'000), Places::kFew);
  EXPECT_EQ(connect("c", 2'000), Places::kFew);
  EXPECT_EQ(connect("a", 1), 0U);
}

TEST_F(RdmPlaces, ThereAreNoMore) {
  std::size_t made = 0;
  for (int host = 0; host < 200; ++host) made += connect(std::to_string(host), 10);
  EXPECT_EQ(made, Places::kMost);
}

// It has gone, and what it has brought waits for receives that never come.
TEST_F(RdmPlaces, WhatAHostHasLeftCountsAsItsOwn) {
  const auto gone = places.of("a");
  gone->left = all.left = kMostConnections * kKept;
  EXPECT_EQ(connect("a", 1), 0U);
  EXPECT_EQ(connect("b", 20), Places::kFew);
}

TEST(RdmPlacesOfAHost, MayKeepAsMuchAsAFewConnections) {
  constexpr std::size_t kEach = Places::kLeastOfHost, kAll = kEach * Places::kMostFull;
  const Places places(kEach);
  EXPECT_TRUE(places.may_keep({.left = 1, .kept = kAll - 2}));
  EXPECT_FALSE(places.may_keep({.left = 1, .kept = kAll - 1}));
  // Who connects makes it no more, but what it leaves when it goes.
  EXPECT_TRUE(places.is_free({.left = kAll - 1, .kept = kAll}, {}));
  EXPECT_FALSE(places.is_free({.left = kAll}, {}));
  const Places frugal(0);
  EXPECT_TRUE(frugal.may_keep({.kept = Places::kLeastOfHost - 1}));
  EXPECT_FALSE(frugal.may_keep({.kept = Places::kLeastOfHost}));
}
TEST_F(RdmPlaces, HostsThatHaveNothingAreForgotten) {
  const auto stays = places.of("a");
  stays->left = 7;
  for (int host = 0; host < 5'000; ++host) places.of(std::to_string(host));
  EXPECT_EQ(places.of("a"), stays);
  EXPECT_EQ(places.of("0")->connections, 0U);
}

// ---- what all share ----

class RdmShares : public testing::Test {
 protected:
  RdmShares() {
    stm_domain_attr_t attr{};
    attr.size = sizeof attr;
    attr.link = "loop";
    EXPECT_EQ(stm_domain_open(&attr, &domain), 0);
  }
  ~RdmShares() override { stm_domain_close(domain); }

  stm_domain_t domain = nullptr;
  OfHost one, other;
};

TEST_F(RdmShares, OneHostLeavesLanesToOthers) {
  Lanes lanes(domain);
  std::vector<std::unique_ptr<LaneMemory>> held;
  const auto take_all = [&](OfHost& host) {
    const auto before = held.size();
    std::unique_ptr<LaneMemory> lane;
    while (lanes.take(host, lane) == 0) held.push_back(std::move(lane));
    return held.size() - before;
  };
  EXPECT_EQ(take_all(one), Lanes::kMost - Lanes::kForOthers);
  EXPECT_EQ(take_all(other), Lanes::kFew);
  for (std::size_t i = 0; i <= Lanes::kFew; ++i) lanes.give_back(one, std::move(held[i]));
  EXPECT_EQ(take_all(one), 1U);
}

TEST_F(RdmShares, OneHostLeavesBuffersToOthers) {
  Buffers buffers(domain, 64, 128);
  std::vector<RxBuffer*> held;
  const auto take_all = [&](OfHost& host) {
    const auto before = held.size();
    for (RxBuffer* buffer = nullptr; buffers.take_further(host, buffer) == 0;)
      held.push_back(buffer);
    return held.size() - before;
  };
  EXPECT_EQ(take_all(one), Buffers::kShared - Buffers::kForOthers);
  EXPECT_EQ(take_all(other), Buffers::kFew);
  for (std::size_t i = 0; i <= Buffers::kFew; ++i) buffers.give_back_further(one, *held[i]);
  EXPECT_EQ(take_all(one), 1U);
  RxBuffer* first = nullptr;
  EXPECT_EQ(buffers.take(first), 0) << "each connection has one";
}

}  // namespace
}  // namespace stp::test::rdm_landing_test
