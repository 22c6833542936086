// SPDX-License-Identifier: BSD-3-Clause
// Blocks that stay away are asked for again; CTS wait while too much is on its way (section 10).
#include "tests/unit/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Recover : public Writing {
 protected:
  void SetUp() override { start({.recover = true}); }
};

// protocol: 9.5, 10.3
TEST_F(Recover, the_missing_tail_is_asked_for_by_a_repeated_cts) {
  auto const permission = grant(20'000);
  wire = [this](const Frame& f, bool) {
    auto const h = parsed(f).header;
    return h.op() == Op::kData && h.param == 2 ? 0U : 1U;
  };
  put(a, ca, data(permission, 20'000));
  settle();
  EXPECT_FALSE(get(ca));
  pass(100 * kMillisecond);
  auto const again = get(ca);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.op(), Op::kClearToSend);
  EXPECT_EQ(again->header.sync, 2U * 4096) << "F_Offset: what came after it was placed";
  EXPECT_EQ(again->header.bufx, kTargetBufx);
  EXPECT_GE(b.count(Counter::kCtsRepeated), 1U);
}

// protocol: 10.3
TEST_F(Recover, intervals_grow_and_nothing_is_asked_once_the_block_is_complete) {
  auto const permission = grant(20'000);
  pass(3 * kSecond);
  std::size_t asked = 0;
  while (get(ca)) ++asked;
  EXPECT_GE(asked, 4U);
  EXPECT_LE(asked, 12U);
  put(a, ca, data(permission, 20'000));
  pass(5 * kSecond);
  EXPECT_FALSE(get(ca));
  EXPECT_TRUE(arrived(20'000));
}

class Pacing : public Writing {
 protected:
  static constexpr std::size_t kBlock = 16'384;
  Pacing()
      : Writing(NodeConfig{.mac = {},
                           .max_stu = 13,
                           .vlan = {},
                           .attach_from = 512,
                           .granted_limit = 2 * kBlock}) {}

  void offer(std::uint32_t i_id, std::uint64_t length) {
    auto e = rts(length);
    e.header.s_id = i_id;
    put(a, ca, e);
    settle();
    ASSERT_TRUE(get(cb));
  }
  void permit_block(std::uint32_t id, std::uint32_t b_num, std::uint32_t bufx) {
    auto e = cts(b_num, kTargetBufx + bufx, 0, 14);
    e.header.d_id = id;
    e.header.s_id = 1000 + id;
    put(b, cb, e);
    settle();
  }
};

// protocol: 10.8
TEST_F(Pacing, no_more_is_granted_than_may_be_on_its_way) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  EXPECT_EQ(b.count(Counter::kCtsHeld), 2U);
  auto const first = get(ca), second = get(ca);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  auto const third = get(ca);
  ASSERT_TRUE(third) << "a Block arrived: there is room for the next";
  EXPECT_EQ(third->header.b_num, 2U);
}

// protocol: 10.9
TEST_F(Pacing, the_transfer_nearest_to_its_end_goes_first) {
  offer(1, 5 * kBlock);
  offer(2, kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  auto const first = get(ca);
  ASSERT_TRUE(first && get(ca));
  permit_block(1, 2, 8);
  permit_block(1, 3, 12);
  put(a, ca, data(first->header, kBlock));
  settle();
  ASSERT_TRUE(get(ca));
  permit_block(2, 0, 16);
  auto const held = b.count(Counter::kCtsHeld);
  EXPECT_EQ(held, 3U);
  auto next = cts(1, kTargetBufx + 4, 0, 14).header;
  next.d_id = 1;
  next.s_id = 1001;
  put(a, ca, data(next, kBlock));
  settle();
  auto const following = get(ca);
  ASSERT_TRUE(following);
  EXPECT_EQ(following->header.d_id, 2U);
}

TEST_F(Pacing, closing_gives_back_what_was_granted) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  settle();
  Connection next;
  b.stock(listener);
  begin_connect();
  settle();
  accept();
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, mx), 0);
  offer(1, 2 * kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  EXPECT_TRUE(get(ca));
  EXPECT_TRUE(get(ca));
}

}  // namespace
}  // namespace stp::test
