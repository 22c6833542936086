// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

namespace stp::test::inbound_test {
namespace {

constexpr Tiles kTiles{12, 10};
constexpr std::uint32_t kStu = 1'024, kMx = 5, kBufx = 16;
constexpr std::uint32_t kRId = 7, kIId = 8;

class InboundTest : public ::testing::Test {
 protected:
  NodeGrants node;
  std::uint64_t owner = 0;
  Inbound inbound;

  InboundTest() { inbound.configure(kTiles, true, GrantAccount(node, owner)); }

  void offer(std::uint64_t t_len, std::uint32_t i_id = kIId) {
    inbound.offered({.max_block = 20, .t_len = t_len, .i_id = i_id});
  }
  // Of Blocks of 4 KiB, each in its own buffer.
  static wire::ClearToSend cts(std::uint32_t b_num, std::uint32_t r_id = kRId,
                               std::uint32_t i_id = kIId) {
    return {.blocksize = 12,
            .r_mx = kMx,
            .r_bufx = kBufx + b_num,
            .b_num = b_num,
            .i_id = i_id,
            .r_id = r_id};
  }
  int grant(const wire::ClearToSend& cts, std::uint64_t limit = ~std::uint64_t{0}) {
    return inbound.grant(cts, limit, 0);
  }
  static wire::MemoryRegionAvailable region(std::uint32_t r_id, std::uint16_t b_win = 4) {
    return {.b_win = b_win,
            .r_mx = kMx,
            .r_bufx = kBufx,
            .t_len = 64 * kStu,
            .i_id = kIId,
            .r_id = r_id};
  }
  static wire::Header stu(std::uint32_t b_num, std::uint16_t number, std::uint64_t at, bool last,
                          std::uint32_t r_id = kRId) {
    const auto where = Address::from_linear(at, kTiles.bufsize);
    return wire::to_header(wire::Data{.stu_num = number,
                                      .r_mx = kMx,
                                      .r_bufx = where.bufx,
                                      .r_offset = where.offset,
                                      .b_num = b_num,
                                      .r_id = r_id},
                           last ? wire::flag::kLast : std::uint16_t{0});
  }
  static std::uint64_t start_of(std::uint32_t b_num) { return kTiles.linear(kBufx + b_num, 0); }
  DropReason find(const wire::Header& header, std::size_t length, InboundBlock*& out) {
    return inbound.find(wire::DataView(header), length, out);
  }
  // An STU arrives and is placed. Returns why it is dropped; kNone: it is not.
  DropReason arrives(const wire::Header& header, std::size_t length = kStu) {
    InboundBlock* block = nullptr;
    const wire::DataView data(header);
    if (const auto drop = inbound.find(data, length, block); drop != DropReason::kNone) return drop;
    if (!block->tile_known) {
      const auto at = kTiles.linear(data.r_bufx(), data.r_offset());
      block->first_tile = (at >> kTiles.stu_log2) - data.stu_num();
      block->tile_known = true;
    }
    const bool last = data.has(wire::flag::kLast);
    const bool completes = block->stus.completes(data.stu_num(), last);
    block->stus.place(data.stu_num(), last);
    inbound.progress(*block, length, 0, 0);
    if (completes) inbound.complete(*block);
    return DropReason::kNone;
  }
  void whole_block(std::uint32_t b_num, std::uint32_t r_id = kRId) {
    for (std::uint16_t i = 0; i < 4; ++i)
      ASSERT_EQ(arrives(stu(b_num, i, start_of(b_num) + i * kStu, i == 3, r_id)),
                DropReason::kNone);
  }
};

// protocol: 7.9
TEST_F(InboundTest, nothing_lands_without_a_grant) {
  EXPECT_EQ(arrives(stu(0, 0, start_of(0), false)), DropReason::kNoGrant);
  offer(16 * kStu);
  EXPECT_EQ(arrives(stu(0, 0, start_of(0), false)), DropReason::kNoGrant);
  ASSERT_EQ(grant(cts(0)), 0);
  EXPECT_EQ(inbound.outstanding(), 4 * kStu);
  EXPECT_EQ(arrives(stu(1, 0, start_of(1), false)), DropReason::kBadBNum);
  EXPECT_EQ(arrives(stu(0, 0, start_of(1), false)), DropReason::kOutsideGrant);
  auto wrong = stu(0, 0, start_of(0), false);
  wrong.mx = kMx + 1;
  EXPECT_EQ(arrives(wrong), DropReason::kOutsideGrant);
  whole_block(0);
  EXPECT_EQ(inbound.outstanding(), 0U);
  EXPECT_EQ(owner, 0U);
  EXPECT_EQ(arrives(stu(0, 0, start_of(0), false)), DropReason::kDuplicateBlock);
}

// protocol: 7.9
TEST_F(InboundTest, a_grant_is_no_larger_than_the_offer) {
  offer(5 * kStu);
  EXPECT_EQ(grant(cts(2)), -EINVAL);
  ASSERT_EQ(grant(cts(1)), 0);
  EXPECT_EQ(inbound.outstanding(), kStu);
  auto large = cts(0, 9, 10);
  inbound.offered({.max_block = 11, .t_len = 100, .i_id = 10});
  EXPECT_EQ(grant(large), -EINVAL) << "a Block larger than the sender can make";
}

TEST_F(InboundTest, a_grant_may_be_limited_to_fewer_bytes) {
  ASSERT_EQ(grant(cts(0), 2 * kStu), 0);
  EXPECT_EQ(inbound.outstanding(), 2 * kStu);
  EXPECT_EQ(arrives(stu(0, 2, start_of(0) + 2 * kStu, false)), DropReason::kOutsideGrant);
}

// protocol: 7.10
TEST_F(InboundTest, a_repeated_grant_grants_once) {
  offer(16 * kStu);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(grant(cts(0)), 0);
  EXPECT_EQ(inbound.outstanding(), 4 * kStu);
  ASSERT_EQ(arrives(stu(0, 0, start_of(0), false)), DropReason::kNone);
  ASSERT_EQ(grant(cts(0)), 0);
  EXPECT_EQ(inbound.outstanding(), 3 * kStu);
  EXPECT_EQ(inbound.first_missing(kRId, 0), kStu);
  EXPECT_EQ(inbound.first_missing(kRId, 1), 0U);
  EXPECT_EQ(inbound.first_missing(kRId + 1, 0), 0U);
  auto elsewhere = cts(0);
  elsewhere.r_bufx = kBufx + 9;
  ASSERT_EQ(grant(elsewhere), 0);  // the Block begins again, elsewhere
  EXPECT_EQ(inbound.outstanding(), 4 * kStu);
  EXPECT_EQ(inbound.first_missing(kRId, 0), 0U);
  EXPECT_EQ(arrives(stu(0, 1, start_of(0) + kStu, false)), DropReason::kOutsideGrant);
}

// protocol: 7.11
TEST_F(InboundTest, all_blocks_of_a_transfer_have_the_size_of_the_first) {
  ASSERT_EQ(grant(cts(0)), 0);
  auto other = cts(1);
  other.blocksize = 11;
  EXPECT_EQ(grant(other), -EINVAL);
  EXPECT_EQ(inbound.outstanding(), 4 * kStu);
}

// protocol: 7.14
TEST_F(InboundTest, a_block_has_no_more_stus_than_can_be_numbered) {
  auto huge = cts(0);
  huge.blocksize = kTiles.stu_log2 + wire::kMaxStusOfBlockLog2 + 1;
  EXPECT_EQ(grant(huge), -EINVAL);
  EXPECT_EQ(inbound.transfer(kRId), nullptr);
}

// protocol: 7.14
TEST_F(InboundTest, what_one_connection_makes_the_node_keep_is_bounded) {
  const auto most = static_cast<std::uint32_t>(Inbound::kMaxOpenBlocks);
  EXPECT_EQ(grant(cts(most)), -EINVAL) << "too far ahead";
  for (std::uint32_t b = 0; b < most; ++b) ASSERT_EQ(grant(cts(b)), 0) << b;
  EXPECT_EQ(grant(cts(0, kRId + 1, kIId + 1)), -ENOBUFS);
  whole_block(0);
  EXPECT_EQ(grant(cts(0, kRId + 1, kIId + 1)), 0);
}

// protocol: 7.12
TEST_F(InboundTest, what_the_peer_has_ended_cannot_be_granted) {
  offer(16 * kStu);
  inbound.requests().ended(kIId, wire::kNoId);
  EXPECT_EQ(grant(cts(0)), -EALREADY);
  auto mra = region(kRId);
  EXPECT_EQ(inbound.open_region(mra), -EALREADY);
  EXPECT_EQ(inbound.outstanding(), 0U);
}

TEST_F(InboundTest, what_has_ended_takes_nothing_any_more) {
  ASSERT_EQ(grant(cts(0)), 0);
  ASSERT_EQ(grant(cts(0, kRId + 1, kIId + 1)), 0);
  ASSERT_EQ(arrives(stu(0, 0, start_of(0), false)), DropReason::kNone);
  inbound.end(kRId);
  inbound.end(kRId);
  EXPECT_EQ(arrives(stu(0, 1, start_of(0) + kStu, false)), DropReason::kNoGrant);
  EXPECT_EQ(inbound.outstanding(), 4 * kStu);
  whole_block(0, kRId + 1);
  EXPECT_EQ(owner, 0U);
}

TEST_F(InboundTest, a_new_transfer_of_the_same_names_begins_at_its_first_block) {
  offer(4 * kStu);
  ASSERT_EQ(grant(cts(0)), 0);
  whole_block(0);
  ASSERT_EQ(grant(cts(0)), 0);  // a late repeat
  EXPECT_EQ(inbound.outstanding(), 0U);
  offer(4 * kStu);
  ASSERT_EQ(grant(cts(0)), 0);
  EXPECT_EQ(inbound.outstanding(), 4 * kStu);
  whole_block(0);
}

// protocol: 10.8
TEST_F(InboundTest, pacing_learns_what_a_grant_would_cost_before_it_is_made) {
  offer(5 * kStu);
  EXPECT_EQ(inbound.demand(cts(0)).bytes, 4 * kStu);
  EXPECT_EQ(inbound.demand(cts(0)).remaining, 5 * kStu);
  EXPECT_EQ(inbound.demand(cts(1)).bytes, kStu);
  EXPECT_EQ(inbound.demand(cts(1)).remaining, kStu);
  EXPECT_EQ(inbound.demand(cts(2)).bytes, 0U);
  const auto first = inbound.demand(cts(0)).memory;
  ASSERT_EQ(grant(cts(0)), 0);
  EXPECT_EQ(inbound.demand(cts(0)).bytes, 0U) << "it is granted";
  EXPECT_LT(inbound.demand(cts(1)).memory, first) << "the Transfer itself is there";
}

// protocol: 7.13, 9.10
TEST_F(InboundTest, a_region_takes_blocks_within_its_window_anywhere_in_it) {
  EXPECT_EQ(inbound.open_region(region(kRId, 0)), -EINVAL);
  EXPECT_EQ(inbound.open_region(region(kRId, Inbound::kMaxWindow + 1)), -EINVAL);
  ASSERT_EQ(inbound.open_region(region(kRId)), 0);
  ASSERT_EQ(inbound.open_region(region(kRId)), 0);  // repeated
  const auto end = start_of(0) + 64 * kStu;
  EXPECT_EQ(arrives(stu(4, 0, start_of(0), true)), DropReason::kBadBNum);
  EXPECT_EQ(arrives(stu(3, 0, end - kStu, true)), DropReason::kNone);
  EXPECT_EQ(arrives(stu(3, 0, end - kStu, true)), DropReason::kDuplicateBlock);
  EXPECT_EQ(arrives(stu(0, 0, end - 10, true), 11), DropReason::kOutsideGrant);
  EXPECT_EQ(arrives(stu(0, 1, start_of(0) + 5 * kStu, true)), DropReason::kNone);
  EXPECT_EQ(arrives(stu(0, 0, start_of(0), false)), DropReason::kBadStuNum) << "not at tile 4";
  EXPECT_EQ(arrives(stu(0, 0, start_of(0) + 4 * kStu, false)), DropReason::kNone);
  EXPECT_EQ(arrives(stu(4, 0, start_of(0), true)), DropReason::kNone) << "the window has moved";
}

// protocol: 8.6
TEST_F(InboundTest, a_put_block_of_one_stu_needs_no_place_of_its_own) {
  ASSERT_EQ(inbound.open_region(region(kRId)), 0);
  const auto finds = [this](const wire::Header& header, std::size_t length) {
    InboundTransfer* out = nullptr;
    return inbound.find_whole(wire::DataView(header), length, out);
  };
  const auto first = start_of(0), end = first + 64 * kStu;
  EXPECT_TRUE(finds(stu(0, 0, first, true), kStu));
  EXPECT_TRUE(finds(stu(3, 0, end - 1, true), 1));
  EXPECT_TRUE(finds(stu(1, 0, first + 5, true), 0));
  EXPECT_FALSE(finds(stu(0, 0, first, false), kStu));
  EXPECT_FALSE(finds(stu(0, 1, first, true), kStu));
  EXPECT_FALSE(finds(stu(4, 0, first, true), kStu));
  EXPECT_FALSE(finds(stu(0, 0, first - 1, true), 1));
  EXPECT_FALSE(finds(stu(0, 0, end - 1, true), 2));
  EXPECT_FALSE(finds(stu(0, 0, first + 1, true), kStu));
  EXPECT_FALSE(finds(stu(0, 0, first, true, kRId + 1), kStu));
  auto wrong = stu(0, 0, first, true);
  wrong.mx = kMx + 1;
  EXPECT_FALSE(finds(wrong, kStu));
  ASSERT_EQ(arrives(stu(1, 0, first, true)), DropReason::kNone);
  EXPECT_FALSE(finds(stu(1, 0, first, true), kStu)) << "it is complete";
  EXPECT_TRUE(finds(stu(2, 0, first, true), kStu));
  ASSERT_EQ(arrives(stu(0, 0, first, false)), DropReason::kNone);
  EXPECT_FALSE(finds(stu(2, 0, first, true), kStu)) << "a Block has begun and may be this one";
}

// protocol: 7.14
TEST_F(InboundTest, regions_count_what_they_may_have_to_track) {
  std::uint32_t id = 1;
  while (id < TransferTable::kMost && inbound.open_region(region(id, Inbound::kMaxWindow)) == 0)
    ++id;
  // A place of a window counts as 1,024 STUs at least.
  EXPECT_EQ(id - 1, Inbound::kMaxTrackedStus / (1'024 * Inbound::kMaxWindow));
  EXPECT_EQ(inbound.open_region(region(id, Inbound::kMaxWindow)), -ENOBUFS);
  inbound.end(1);
  EXPECT_EQ(inbound.open_region(region(id, Inbound::kMaxWindow)), 0);
}

TEST_F(InboundTest, what_is_left_of_a_connection_is_freed_in_slices) {
  for (std::uint32_t b = 0; b < 200; ++b) ASSERT_EQ(grant(cts(b)), 0);
  ASSERT_EQ(inbound.open_region(region(kRId + 1)), 0);
  inbound.end(kRId);
  EXPECT_TRUE(inbound.untidy()) << "one step frees a part";
  EXPECT_LE(inbound.tidy(10), 11U);  // a Transfer counts with its Blocks
  ASSERT_EQ(grant(cts(0)), 0);
  auto remains = inbound.clear();
  EXPECT_FALSE(inbound.untidy());
  EXPECT_EQ(owner, 0U);
  EXPECT_EQ(inbound.transfer(kRId), nullptr);
  EXPECT_EQ(inbound.transfer(kRId + 1), nullptr);
  EXPECT_FALSE(remains.empty());
}

}  // namespace
}  // namespace stp::test::inbound_test

namespace stp::test {
namespace {

wire::RequestToSend rts(std::uint32_t i_id, std::uint64_t t_len) {
  return {.max_block = 20, .t_len = t_len, .i_id = i_id};
}

TEST(PeerRequests, an_offer_is_fresh_until_a_transfer_of_it_begins) {
  PeerRequests requests;
  EXPECT_EQ(requests.offer(1), nullptr);
  requests.offered(rts(1, 100), false);
  ASSERT_NE(requests.offer(1), nullptr);
  EXPECT_EQ(requests.offer(1)->t_len, 100U);
  EXPECT_TRUE(requests.offer(1)->fresh);
  requests.begun(1);
  EXPECT_FALSE(requests.offer(1)->fresh);
  requests.offered(rts(1, 100), true);  // the RTS is repeated during the Transfer
  EXPECT_FALSE(requests.offer(1)->fresh);
  requests.offered(rts(1, 200), false);  // another Transfer of the same name
  EXPECT_TRUE(requests.offer(1)->fresh);
  EXPECT_EQ(requests.offer(1)->t_len, 200U);
}

TEST(PeerRequests, of_too_many_offers_the_oldest_is_forgotten) {
  PeerRequests requests;
  for (std::uint32_t i = 0; i <= PeerRequests::kMaxOffers; ++i) requests.offered(rts(i, 1), false);
  EXPECT_EQ(requests.offer(0), nullptr);
  EXPECT_NE(requests.offer(1), nullptr);
  EXPECT_NE(requests.offer(PeerRequests::kMaxOffers), nullptr);
}

// protocol: 7.12
TEST(PeerRequests, what_has_ended_has_ended_for_the_name_that_the_end_gave) {
  PeerRequests requests;
  requests.ended(1, 10);
  requests.ended(2, wire::kNoId);  // the peer did not know this side's id
  EXPECT_TRUE(requests.has_ended(1, 10));
  EXPECT_FALSE(requests.has_ended(1, 11));
  EXPECT_TRUE(requests.has_ended(2, 11));
  EXPECT_FALSE(requests.has_ended(3, 10));
  requests.forget_ended(1);
  EXPECT_FALSE(requests.has_ended(1, 10));
  for (std::uint32_t i = 0; i < PeerRequests::kMaxEnded; ++i) requests.ended(100 + i, 1);
  EXPECT_FALSE(requests.has_ended(2, 11));  // displaced by later ones
}

// protocol: 10.22
TEST(Reordering, each_that_comes_late_after_it_was_asked_for_doubles_the_distance_once) {
  Reordering order;
  EXPECT_EQ(order.distance(), 8U);
  order.came_late();
  EXPECT_EQ(order.distance(), 8U) << "nothing had been asked for";
  order.asked();
  order.came_late();
  order.came_late();
  EXPECT_EQ(order.distance(), 16U);
  for (int i = 0; i < 20; ++i) {
    order.asked();
    order.came_late();
  }
  EXPECT_EQ(order.distance(), Reordering::kMost);
}

// protocol: 10.22
TEST(Reordering, many_that_had_to_be_asked_for_halve_the_distance) {
  Reordering order;
  for (int i = 0; i < 2; ++i) {
    order.asked();
    order.came_late();
  }
  ASSERT_EQ(order.distance(), 32U);
  for (std::uint32_t i = 0; i + 1 < Reordering::kNeeded; ++i) order.asked();
  EXPECT_EQ(order.distance(), 32U);
  order.asked();
  EXPECT_EQ(order.distance(), 16U);
  for (std::uint32_t i = 0; i < 5 * Reordering::kNeeded; ++i) order.asked();
  EXPECT_EQ(order.distance(), Reordering::kLeast);
}

TEST(RecentMaximum, is_the_longest_of_the_last_second_or_two) {
  RecentMaximum recent;
  EXPECT_EQ(recent.longest(), 0U);
  recent.note(50, 0);
  recent.note(20, 100);
  EXPECT_EQ(recent.longest(), 50U);
  recent.note(10, kSecond);
  EXPECT_EQ(recent.longest(), 50U) << "of the second before";
  recent.note(5, 2 * kSecond);
  EXPECT_EQ(recent.longest(), 10U);
  recent.note(1, 4 * kSecond);
  EXPECT_EQ(recent.longest(), 1U) << "nothing is known of the second before";
}

// protocol: 10.13
TEST(Silence, few_blocks_are_asked_for_until_an_answer_shows_that_they_were_lost) {
  Silence silence;
  EXPECT_EQ(silence.asks(), 1U);
  std::uint64_t newest = 10;
  for (const unsigned expected : {2U, 4U, 8U, 16U, 32U, 64U, 64U}) {
    silence.asked(newest);
    silence.broken(1, true, 1'000, 0);  // the Block that was asked for arrives
    EXPECT_EQ(silence.asks(), expected);
    silence.broken(2, true, 10, 0);  // another answer to the same question
    EXPECT_EQ(silence.asks(), expected);
    newest += 10;
  }
  EXPECT_EQ(silence.longest_pause(), 0U) << "something was lost";
}

// protocol: 10.14
TEST(Silence, a_block_that_nobody_asked_for_again_shows_that_none_was_lost) {
  Silence silence;
  silence.asked(10);
  silence.broken(1, true, 1'000, 0);
  ASSERT_EQ(silence.asks(), 2U);
  silence.broken(10, false, 20, 0);  // granted before the question
  EXPECT_EQ(silence.asks(), 1U);
  EXPECT_EQ(silence.longest_pause(), 1'000U) << "from the beginning of the silence";
  silence.broken(11, false, 3'000, 0);
  EXPECT_EQ(silence.longest_pause(), 3'000U);
}

// protocol: 10.14
TEST(Silence, a_block_granted_after_the_question_says_nothing_of_those_before) {
  Silence silence;
  silence.asked(10);
  silence.broken(11, false, 1'000, 0);
  EXPECT_EQ(silence.asks(), 1U);
  EXPECT_EQ(silence.longest_pause(), 0U);
}

TEST(Silence, pauses_between_blocks_that_were_lost_are_not_the_peers) {
  Silence silence;
  silence.broken(1, true, 5'000, 0);  // no question is open: a late answer
  EXPECT_EQ(silence.longest_pause(), 0U);
  silence.broken(2, false, 4'000, 0);
  EXPECT_EQ(silence.longest_pause(), 4'000U);
}

class OpenBlocksTest : public ::testing::Test {
 protected:
  InboundTransfer transfer, other;
  std::array<GrantedBlock, 3> blocks;
  OpenBlocks open;

  void SetUp() override {
    for (auto& block : blocks) block.transfer = &transfer;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      open.granted(blocks[i], i == 0, static_cast<Time>(10 * (i + 1)));
  }
  bool arrives(GrantedBlock& block, std::uint32_t sync, Time now, std::uint32_t stu = 0) {
    return open.arrived(block, block.grant_of(stu), sync, now);
  }
  // A Block of `stus` STUs, of which four are granted now. The next part follows the three Blocks.
  void grant_parts(GrantedBlock& block, std::uint32_t stus) {
    block.transfer = &transfer;
    block.stus = StuMap(stus);
    block.parts = std::make_unique<GrantedParts>();
    open.granted(block, false, 40);
  }
};

TEST_F(OpenBlocksTest, stand_in_the_order_of_their_grants) {
  EXPECT_EQ(open.count(), 3U);
  EXPECT_EQ(open.first(), &blocks[0]);
  EXPECT_EQ(open.after(blocks[0]), &blocks[1]);
  EXPECT_EQ(open.after(blocks[2]), nullptr);
  EXPECT_EQ(open.silent_since(), 10);  // later grants do not end the silence
}

// protocol: 10.14
TEST_F(OpenBlocksTest, those_before_the_latest_that_has_come_are_overtaken) {
  EXPECT_FALSE(open.overtaken(blocks[0]));
  EXPECT_FALSE(arrives(blocks[1], 5, 50));
  EXPECT_TRUE(open.overtaken(blocks[0]));
  EXPECT_FALSE(open.overtaken(blocks[1]));
  EXPECT_FALSE(open.overtaken(blocks[2]));
  EXPECT_EQ(open.silent_since(), 50);
  open.grant_again(blocks[0]);  // the newest grant now
  EXPECT_FALSE(open.overtaken(blocks[0]));
  EXPECT_EQ(open.first(), &blocks[1]);
  EXPECT_EQ(open.after(blocks[2]), &blocks[0]);
}

// protocol: 10.14
TEST_F(OpenBlocksTest, a_repeat_shows_a_loss_where_the_sending_is_another_one) {
  ASSERT_FALSE(arrives(blocks[0], 5, 50));
  OpenBlocks::repeated(blocks[0], 55);
  EXPECT_FALSE(arrives(blocks[0], 5, 60));  // the first transmission: it was only late
  OpenBlocks::repeated(blocks[0], 65);
  EXPECT_TRUE(arrives(blocks[0], 6, 70));  // another transmission: the first had a loss
  EXPECT_EQ(blocks[0].repeats, 0U);
  OpenBlocks::repeated(blocks[2], 75);  // nothing of it had arrived, and nothing had overtaken it
  EXPECT_FALSE(arrives(blocks[2], 7, 80));
}

// protocol: 10.4, 13.19
TEST_F(OpenBlocksTest, an_stu_of_a_part_overtakes_what_was_granted_before_that_part) {
  GrantedBlock in_parts, between;
  between.transfer = &transfer;
  grant_parts(in_parts, 12);
  open.granted(between, false, 50);
  open.granted_part(in_parts, 4, false, 60);
  EXPECT_FALSE(arrives(in_parts, 5, 70, 3));
  EXPECT_TRUE(open.overtaken(blocks[2]));
  EXPECT_FALSE(open.overtaken(between));
  EXPECT_FALSE(arrives(in_parts, 6, 80, 4));
  EXPECT_TRUE(open.overtaken(between));
}

// protocol: 10.22, 13.19
TEST_F(OpenBlocksTest, what_may_be_of_the_first_sending_of_an_early_part_passes_nothing) {
  for (const std::uint32_t sync : {5U, 7U}) {
    GrantedBlock in_parts;
    grant_parts(in_parts, 12);
    open.granted_part(in_parts, 4, false, 50);
    for (std::uint32_t stu = 0; stu < 12; ++stu) {
      if (stu == 3) continue;
      arrives(in_parts, stu < 4 ? 5 : 6, 60, stu);
      in_parts.stus.place(stu, stu == 11);
    }
    OpenBlocks::repeated(in_parts, 70);
    open.grant_again(in_parts);
    arrives(in_parts, sync, 80, 3);
    in_parts.stus.place(3, false);
    EXPECT_EQ(open.passed_by(in_parts), sync == 7) << "7: it answers the repeat";
  }
}

// Each part has a Sync of its own, and more of a part that had begun answers nothing.
// protocol: 10.14, 13.19
TEST_F(OpenBlocksTest, a_repeat_shows_a_loss_in_the_part_that_comes_once_more) {
  GrantedBlock in_parts;
  grant_parts(in_parts, 16);
  open.granted_part(in_parts, 4, false, 50);
  open.granted_part(in_parts, 8, false, 50);
  EXPECT_FALSE(arrives(in_parts, 5, 60, 0));
  EXPECT_FALSE(arrives(in_parts, 6, 60, 4));
  OpenBlocks::repeated(in_parts, 70);
  open.granted_part(in_parts, 12, false, 75);
  EXPECT_FALSE(arrives(in_parts, 6, 80, 5)) << "the first sending goes on";
  EXPECT_FALSE(arrives(in_parts, 7, 80, 8)) << "the first that comes of its part";
  EXPECT_FALSE(arrives(in_parts, 8, 80, 12)) << "granted after the repeat";
  EXPECT_TRUE(arrives(in_parts, 9, 90, 1)) << "another sending";
}

// Until the Last comes, nothing of it is asked for again, and the window would stay as it is.
// protocol: 13.12
TEST_F(OpenBlocksTest, what_is_far_behind_in_a_block_in_parts_is_lost_once) {
  const Tiles tiles;
  GrantedBlock in_parts;
  grant_parts(in_parts, 24);
  in_parts.whole_end = std::uint64_t{24} << tiles.stu_log2;
  in_parts.end = in_parts.whole_end - (std::uint64_t{4} << tiles.stu_log2);
  const auto comes = [&](std::uint32_t stu) {
    in_parts.stus.place(stu, false);
    return open.shows_loss(in_parts);
  };
  for (std::uint32_t stu = 0; stu < 20; ++stu) {
    if (stu == 3 || stu == 13) continue;
    EXPECT_EQ(comes(stu), stu == 11) << stu << ": eight STUs behind the one that is missing";
  }
  EXPECT_FALSE(OpenBlocks::told_path(in_parts, tiles)) << "of the other one it knows nothing";
  in_parts.end = in_parts.whole_end;
  for (std::uint32_t stu = 20; stu < 24; ++stu) EXPECT_EQ(comes(stu), stu == 21) << stu;
  EXPECT_TRUE(OpenBlocks::told_path(in_parts, tiles));
  EXPECT_FALSE(OpenBlocks::told_path(in_parts, tiles)) << "what is asked for twice is lost again";
  EXPECT_FALSE(comes(3));
}

// protocol: 10.22, 13.12
TEST_F(OpenBlocksTest, what_counted_as_lost_and_comes_by_itself_had_only_fallen_behind) {
  for (const bool repeated : {true, false}) {
    GrantedBlock in_parts;
    grant_parts(in_parts, 48);
    const auto comes = [&](std::uint32_t stu) {
      in_parts.stus.place(stu, false);
      return open.shows_loss(in_parts);
    };
    for (std::uint32_t stu = 0; stu < 12; ++stu)
      if (stu != 3) {
        EXPECT_EQ(comes(stu), stu == 11) << stu;
      }
    if (repeated) OpenBlocks::repeated(in_parts, 70);
    EXPECT_FALSE(comes(3));
    for (std::uint32_t stu = 12; stu < 40; ++stu)
      if (stu != 20) {
        EXPECT_EQ(comes(stu), stu == (repeated ? 28U : 36U)) << stu;
      }
  }
}

TEST(GrantedPartsTest, of_too_many_the_oldest_are_one) {
  GrantedParts parts;
  for (std::uint16_t i = 0; i < GrantedParts::kMost + 2; ++i)
    parts.add({.serial = i + 1U, .left = 1, .first = static_cast<std::uint16_t>(4 * i)});
  EXPECT_EQ(parts.all().size(), GrantedParts::kMost);
  EXPECT_EQ(parts.of(11).serial, 1U) << "no later than it was granted";
  EXPECT_EQ(parts.of(11).left, 0U);
  EXPECT_EQ(parts.of(12).serial, 4U);
  EXPECT_EQ(parts.of(15).serial, 4U);
  EXPECT_EQ(parts.newest().serial, GrantedParts::kMost + 2);
}

TEST_F(OpenBlocksTest, those_of_a_transfer_that_has_ended_are_passed_over) {
  blocks[1].transfer = &other;
  other.over = true;
  open.closed(1);
  EXPECT_EQ(open.count(), 2U);
  EXPECT_EQ(open.after(blocks[0]), &blocks[2]);
  EXPECT_FALSE(blocks[1].linked());
  open.clear();
  EXPECT_EQ(open.count(), 0U);
  EXPECT_EQ(open.first(), nullptr);
}

constexpr Tiles kTiles{12, 10};
constexpr std::uint32_t kRId = 7, kBufx = 3;

wire::Get get(std::uint32_t g_num) {
  return {.t_len = 100, .i_mx = 5, .i_bufx = kBufx, .i_offset = 8, .r_id = kRId, .g_num = g_num};
}
wire::Header answer(std::uint32_t g_num) {
  return wire::to_header(
      wire::Data{.r_mx = 5, .r_bufx = kBufx, .r_offset = 8, .b_num = g_num, .r_id = kRId});
}
int expect(ExpectedAnswers& answers, std::uint32_t g_num) {
  return answers.expect(get(g_num), 100, false, kTiles);
}
bool lands(ExpectedAnswers& answers, const wire::Header& header, std::size_t length = 100) {
  return answers.find(wire::DataView(header), length, kTiles) != nullptr;
}

// protocol: 7.18
TEST(ExpectedAnswers, an_answer_lands_where_its_request_said_and_nowhere_else) {
  ExpectedAnswers answers;
  EXPECT_FALSE(lands(answers, answer(1)));
  ASSERT_EQ(expect(answers, 1), 0);
  EXPECT_TRUE(lands(answers, answer(1)));
  EXPECT_FALSE(lands(answers, answer(2)));
  EXPECT_FALSE(lands(answers, answer(1), 101));  // one byte more than requested
  auto elsewhere = answer(1);
  elsewhere.offset = 7;
  EXPECT_FALSE(lands(answers, elsewhere));
  elsewhere = answer(1);
  elsewhere.mx = 6;
  EXPECT_FALSE(lands(answers, elsewhere));
}

TEST(ExpectedAnswers, a_repeated_request_does_not_open_the_landing_of_an_answer_that_has_come) {
  ExpectedAnswers answers;
  ASSERT_EQ(expect(answers, 1), 0);
  ASSERT_EQ(expect(answers, 1), 0);  // a repeat, before the answer
  ASSERT_EQ(expect(answers, 2), 0);
  answers.forget(kRId, 1);
  EXPECT_EQ(expect(answers, 1), -EALREADY);
  EXPECT_EQ(expect(answers, 2), 0);  // still outstanding
  answers.forget(kRId, 2);
  EXPECT_EQ(expect(answers, 2), -EALREADY);
  // So old that it is no longer remembered: it counts as over.
  ASSERT_EQ(expect(answers, 2 + ExpectedAnswers::kMost), 0);
  EXPECT_EQ(expect(answers, 2), -EALREADY);
}

TEST(ExpectedAnswers, are_bounded) {
  ExpectedAnswers answers;
  for (std::uint32_t g = 0; g < ExpectedAnswers::kMost; ++g) ASSERT_EQ(expect(answers, g), 0);
  EXPECT_EQ(expect(answers, ExpectedAnswers::kMost), -ENOBUFS);
  answers.clear();
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(expect(answers, 0), 0);  // earlier numbers have been forgotten
}

}  // namespace
}  // namespace stp::test
