// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(inbound.demand(cts(0)).charge, 4 * kStu);
  EXPECT_EQ(inbound.demand(cts(0)).remaining, 5 * kStu);
  EXPECT_EQ(inbound.demand(cts(1)).charge, kStu);
  EXPECT_EQ(inbound.demand(cts(1)).remaining, kStu);
  EXPECT_EQ(inbound.demand(cts(2)).charge, 0U);
  const auto first = inbound.demand(cts(0)).memory;
  ASSERT_EQ(grant(cts(0)), 0);
  EXPECT_EQ(inbound.demand(cts(0)).charge, 0U) << "it is granted";
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
