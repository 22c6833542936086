// SPDX-License-Identifier: BSD-3-Clause
// Put Blocks into an open region. Most are one STU, for which no state is kept; between them are
// Blocks of several STUs.
#include <algorithm>

#include "stp/node/inbound/inbound_block.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

namespace flag = wire::flag;

class Put : public Writing {
 protected:
  static constexpr std::uint16_t kWindow = 4;
  wire::Header region;

  void SetUp() override {
    Writing::SetUp();
    open_region(kWindow, kRId);
  }
  void open_region(std::uint16_t window, std::uint32_t r_id) {
    auto mra = control(wire::Op::kMemoryRegionAvailable);
    mra.header.param = window;
    mra.header.mx = mx;
    mra.header.bufx = kTargetBufx;
    mra.header.set_t_len(8 * kStu);
    mra.header.s_id = r_id;
    put(b, cb, mra);
    settle();
    const auto got = get(ca);
    ASSERT_TRUE(got);
    region = got->header;
  }
  // STU `number` of Block `b_num`, to `at` in the region.
  wire::Header piece(std::uint32_t b_num, std::uint16_t number, std::uint32_t at,
                     std::uint16_t flags) {
    auto h = stu(region, number, at, flags);
    h.b_num = b_num;
    return h;
  }
  [[nodiscard]] bool is_zero(std::size_t at, std::size_t length) const {
    return std::all_of(target.data() + at, target.data() + at + length,
                       [](std::byte byte) { return byte == std::byte{0}; });
  }
  wire::Header whole(std::uint32_t b_num, std::uint32_t at) {
    return piece(b_num, 0, at, flag::kLast | flag::kSilent);
  }
};

// protocol: 8.6, 9.10
TEST_F(Put, blocks_of_one_stu_land_anywhere_in_the_region) {
  for (std::uint32_t b_num = 0; b_num < 3 * kWindow; ++b_num) {
    const auto at = 100 * b_num;
    inject_stu(whole(b_num, at), at, 100);
  }
  EXPECT_TRUE(arrived(100 * 3 * kWindow));
  EXPECT_EQ(b.count(Counter::kRxBlocks), 3U * kWindow);
}

// protocol: 7.6, 8.6, 8.10, 9.10
TEST_F(Put, a_block_of_one_stu_that_fails_a_check_writes_nothing) {
  expect_dropped(whole(kWindow, 0), Counter::kBadBNum, 8);
  expect_dropped(whole(0, 8 * kStu), Counter::kOutsideGrant, 8);
  expect_dropped(whole(0, 8 * kStu - 4), Counter::kStuCrossesBuffer, 8);
  auto h = whole(0, 0);
  h.d_id = kRId + 1;
  expect_dropped(h, Counter::kNoGrant, 8);
  h = whole(0, 0);
  std::uint16_t wider = 0;
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, wider), 0);
  h.mx = wider;
  expect_dropped(h, Counter::kOutsideGrant, 8);
}

// protocol: 8.10
TEST_F(Put, a_block_of_one_stu_is_placed_once) {
  inject_stu(whole(0, 0), 0, 8);
  inject_stu(whole(1, 8), 8, 8);
  std::fill_n(target.data(), 16, std::byte{0});
  expect_dropped(whole(0, 0), Counter::kDuplicateBlock, 8);
  expect_dropped(whole(1, 0), Counter::kDuplicateBlock, 8);
  inject_stu(whole(3, 0), 0, 8);  // arrives before a missing one
  std::fill_n(target.data(), 16, std::byte{0});
  expect_dropped(whole(3, 0), Counter::kDuplicateBlock, 8);
}

// Bytes that the user wrote after a Block or an STU had arrived are not overwritten by its repeats.
// protocol: 8.10
TEST_F(Put, a_duplicate_leaves_what_the_user_wrote_since) {
  const auto first = piece(0, 0, 0, flag::kSilent);
  const auto last = piece(0, 1, kStu, flag::kLast | flag::kSilent);
  const auto reset = [&](std::size_t at, std::size_t length) {
    std::fill_n(target.data() + at, length, std::byte{0xa5});
  };
  const auto stayed = [&](std::size_t at, std::size_t length) {
    return std::all_of(target.data() + at, target.data() + at + length,
                       [](std::byte byte) { return byte == std::byte{0xa5}; });
  };
  inject_stu(first, 0, kStu);
  reset(0, kStu);
  inject_stu(first, 0, kStu);  // its Block is not complete
  EXPECT_TRUE(stayed(0, kStu));
  inject_stu(last, kStu, 100);
  inject_stu(whole(1, 3 * kStu), 3 * kStu, 100);
  EXPECT_EQ(b.count(Counter::kRxBlocks), 2U);
  reset(0, 4 * kStu);
  for (int again = 0; again < 3; ++again) {
    inject_stu(last, kStu, 100);
    inject_stu(first, 0, kStu);
    inject_stu(whole(1, 3 * kStu), 3 * kStu, 100);
  }
  EXPECT_TRUE(stayed(0, 4 * kStu));
  EXPECT_EQ(b.count(Counter::kDuplicateStu), 1U);
  EXPECT_EQ(b.count(Counter::kDuplicateBlock), 9U);
}

// protocol: 8.15
TEST_F(Put, the_end_of_a_block_is_written_when_all_before_it_has_come) {
  inject_stu(piece(0, 2, 2 * kStu, flag::kLast | flag::kSilent), 2 * kStu, 100);
  EXPECT_EQ(std::memcmp(target.data() + 2 * kStu, source.data() + 2 * kStu, 92), 0);
  EXPECT_TRUE(is_zero(2 * kStu + 92, 8));
  inject_stu(piece(0, 0, 0, flag::kSilent), 0, kStu);
  EXPECT_TRUE(is_zero(2 * kStu + 92, 8));
  inject_stu(piece(0, 1, kStu, flag::kSilent), kStu, kStu);
  EXPECT_TRUE(arrived(2 * kStu + 100));
}

// protocol: 8.15
TEST_F(Put, the_end_of_a_silent_block_waits_for_the_blocks_before_it) {
  inject_stu(whole(2, 200), 200, 100);
  inject_stu(whole(1, 300), 300, 3);
  inject_stu(piece(3, 0, kStu, flag::kSilent), kStu, kStu);
  inject_stu(piece(3, 1, 2 * kStu, flag::kLast | flag::kSilent), 2 * kStu, 50);
  EXPECT_TRUE(is_zero(292, 11));
  EXPECT_TRUE(is_zero(2 * kStu + 42, 8));
  EXPECT_EQ(b.count(Counter::kRxBlocks), 3U);
  inject_stu(whole(2, 200), 200, 100);
  EXPECT_EQ(b.count(Counter::kDuplicateBlock), 1U);
  EXPECT_TRUE(is_zero(292, 11));
  inject_stu(whole(0, 0), 0, 100);
  EXPECT_EQ(std::memcmp(target.data() + 200, source.data() + 200, 103), 0);
  EXPECT_EQ(std::memcmp(target.data() + kStu, source.data() + kStu, kStu + 50), 0);
}

// protocol: 8.15
TEST_F(Put, what_is_held_never_comes_back_over_what_a_later_block_wrote) {
  inject_stu(whole(1, 300), 300, 8);
  const auto newer = Bytes(source.data() + 5, 200);  // to bytes 200 to 399
  inject(b, kMacA, whole(2, 200), newer);
  inject_stu(whole(0, 0), 0, 100);
  EXPECT_EQ(std::memcmp(target.data() + 200, newer.data(), newer.size()), 0);
}

// The same if the earlier Block lacks one of its STUs.
// protocol: 8.15
TEST_F(Put, what_is_held_of_an_incomplete_block_never_comes_back) {
  inject_stu(piece(1, 1, kStu, flag::kLast | flag::kSilent), kStu, 100);
  const auto newer = Bytes(source.data() + 5, 200);  // to bytes 90 to 289 of that STU
  inject(b, kMacA, whole(2, kStu + 90), newer);
  inject_stu(piece(1, 0, 0, flag::kSilent), 0, kStu);
  inject_stu(whole(0, 3 * kStu), 3 * kStu, 8);
  EXPECT_EQ(std::memcmp(target.data() + kStu, source.data() + kStu, 90), 0);
  EXPECT_EQ(std::memcmp(target.data() + kStu + 90, newer.data(), newer.size()), 0);
}

// Of three Blocks that write the same place, the last one counts, and none is visible too early.
// protocol: 8.15
TEST_F(Put, a_later_block_does_not_make_an_end_visible_that_is_held) {
  inject_stu(whole(1, 300), 300, 8);
  const auto newer = Bytes(source.data() + 5, 4);
  inject(b, kMacA, whole(2, 304), newer);
  inject(b, kMacA, whole(3, 302), Bytes());
  EXPECT_TRUE(is_zero(300, 8));
  inject_stu(whole(0, 0), 0, 100);
  EXPECT_EQ(std::memcmp(target.data() + 300, source.data() + 300, 4), 0);
  EXPECT_EQ(std::memcmp(target.data() + 304, newer.data(), 4), 0);
}

// A peer that makes all Blocks overlap cannot make an STU take more work than a turn allows.
// protocol: 8.15
TEST_F(Put, an_stu_over_too_many_held_ends_is_dropped_as_if_lost) {
  open_region(2 * HeldEnds::kMostMet, kRId + 1);
  std::uint32_t held = 0;
  while (held < HeldEnds::kMostMet) inject_stu(whole(++held, 300), 300, 8);
  inject_stu(whole(held + 1, 300), 300, 8);
  EXPECT_EQ(b.count(Counter::kBlocksFull), 0U);
  inject_stu(whole(held + 2, 306), 306, 8);
  EXPECT_EQ(b.count(Counter::kBlocksFull), 1U);
  inject_stu(whole(held + 2, 308), 308, 8);
  EXPECT_EQ(b.count(Counter::kBlocksFull), 1U) << "none is held there";
  inject_stu(whole(0, 0), 0, 100);
  EXPECT_EQ(std::memcmp(target.data() + 300, source.data() + 300, 16), 0);
}

// The user gets a header that the Block is complete.
// protocol: 8.9, 8.15
TEST_F(Put, a_block_that_is_told_of_is_whole_although_others_are_missing) {
  inject_stu(piece(1, 0, 0, flag::kLast), 0, 100);
  EXPECT_TRUE(arrived(100));
  EXPECT_TRUE(get(cb));
}

// protocol: 7.5, 8.15
TEST_F(Put, what_is_held_is_not_written_into_memory_that_was_unmapped) {
  inject_stu(whole(1, 200), 200, 100);
  ASSERT_EQ(b.node.free_mx(listener, mx), 0);
  ASSERT_EQ(b.node.unmap(target_region), 0);
  inject(b, kMacA, whole(0, 0), Bytes(source.data(), 100));
  EXPECT_TRUE(is_zero(292, 8));
}

// protocol: 8.6, 9.10
TEST_F(Put, blocks_of_several_stus_and_of_one_mix) {
  inject_stu(piece(1, 1, 3 * kStu, flag::kLast | flag::kSilent), 3 * kStu, 100);
  inject_stu(whole(0, 0), 0, kStu);
  inject_stu(whole(2, kStu), kStu, kStu);
  EXPECT_EQ(b.count(Counter::kRxBlocks), 2U);
  inject_stu(piece(1, 0, 2 * kStu, flag::kSilent), 2 * kStu, kStu);
  EXPECT_EQ(b.count(Counter::kRxBlocks), 3U);
  inject_stu(whole(3, 3 * kStu + 100), 3 * kStu + 100, 100);
  EXPECT_TRUE(arrived(3 * kStu + 200));
}

// protocol: 8.3, 8.6
TEST_F(Put, a_block_that_has_begun_does_not_become_one_of_one_stu) {
  inject_stu(piece(0, 1, kStu, flag::kLast | flag::kSilent), kStu, 100);
  std::fill_n(target.data(), 2 * kStu, std::byte{0});
  expect_dropped(whole(0, 0), Counter::kBadStuNum, 8);
  inject_stu(piece(0, 0, 0, flag::kSilent), 0, kStu);
  EXPECT_EQ(b.count(Counter::kRxBlocks), 1U);
}

// In a Node's frame to itself the source and the destination may be the same memory.
TEST_F(Put, an_stu_that_stands_apart_is_copied_also_onto_itself) {
  const auto length = kStu - 200;
  std::copy_n(source.data(), length, target.data());
  Frame head(1'000);
  head.resize(wire::emit_head({b.config.mac, kMacA, {}, false}, whole(0, 100), {}, head.data()));
  const LoopedFrame looped{head, Bytes(target.data(), length)};
  b.node.receive_looped({&looped, 1}, now);
  EXPECT_EQ(std::memcmp(target.data() + 100, source.data(), length), 0);
}

TEST_F(Put, an_stu_that_a_link_received_apart_from_its_head_arrives) {
  Frame head(1'000);
  head.resize(wire::emit_head({b.config.mac, kMacA, {}, false}, whole(0, 0), {}, head.data()));
  const LoopedFrame apart{head, Bytes(source.data(), kStu)};
  b.node.receive_apart({&apart, 1}, now);
  EXPECT_TRUE(arrived(kStu));
  const LoopedFrame torn{Bytes(head).first(30), {}};
  b.node.receive_apart({&torn, 1}, now);
  EXPECT_EQ(b.count(Counter::kTruncated), 1U);
}

// protocol: 6.9
TEST_F(Put, a_full_queue_drops_a_block_that_is_to_be_told_of) {
  wire::Header nop = stu(region, 0, 0);
  nop.op_flags = wire::op_flags(wire::Op::kNoOperation);
  for (int i = 0; i < 64; ++i) inject(b, kMacA, nop);
  const auto told = piece(0, 0, 0, flag::kLast);
  expect_dropped(told, Counter::kSlotOverrun, 8);
  while (get(cb)) {
  }
  inject_stu(told, 0, 8);
  EXPECT_TRUE(arrived(8));
  const auto header = get(cb);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header.bufx, kTargetBufx);
}

}  // namespace
}  // namespace stp::test
