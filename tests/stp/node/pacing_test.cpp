// SPDX-License-Identifier: BSD-3-Clause
// CTS wait while too much data is in flight (section 10).
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

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
  // From here on, the listener at B and new connections belong to another owner.
  void next_owner(std::uint64_t owner) {
    ASSERT_EQ(b.node.unlisten(listener), 0);
    EndpointConfig config;
    config.bufsize = kBufsize;
    ASSERT_EQ(b.node.open_endpoint(config, listener, owner), 0);
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    b.stock(listener);
    begin_connect();
    settle();
    accept();
    const auto to = target.all();
    ASSERT_EQ(b.node.map(listener, Direction::kReceive, kTargetBufx, {&to, 1}, target_region), 0);
    ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, mx), 0);
  }
};

// protocol: 10.8
TEST_F(Pacing, no_more_is_granted_than_may_be_on_its_way) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  EXPECT_EQ(b.count(Counter::kCtsHeld), 2U);
  const auto first = get(ca), second = get(ca);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  const auto third = get(ca);
  ASSERT_TRUE(third) << "a Block arrived: there is room for the next";
  EXPECT_EQ(third->header.b_num, 2U);
}

// protocol: 10.9
TEST_F(Pacing, the_transfer_nearest_to_its_end_goes_first) {
  offer(1, 5 * kBlock);
  offer(2, kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  const auto first = get(ca);
  ASSERT_TRUE(first && get(ca));
  permit_block(1, 2, 8);
  permit_block(1, 3, 12);
  put(a, ca, data(first->header, kBlock));
  settle();
  ASSERT_TRUE(get(ca));
  permit_block(2, 0, 16);
  const auto held = b.count(Counter::kCtsHeld);
  EXPECT_EQ(held, 3U);
  auto next = cts(1, kTargetBufx + 4, 0, 14).header;
  next.d_id = 1;
  next.s_id = 1001;
  put(a, ca, data(next, kBlock));
  settle();
  const auto following = get(ca);
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

// protocol: 10.9
TEST_F(Pacing, what_one_owner_never_gets_does_not_hold_up_another) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 4; ++b_num) permit_block(1, b_num, 4 * b_num);
  const auto idle = std::move(ca), debtor = std::move(cb);
  next_owner(2);
  offer(1, 2 * kBlock);
  permit_block(1, 0, 0);
  permit_block(1, 1, 4);
  const auto first = get(ca);
  ASSERT_TRUE(first) << "nothing of its own is outstanding";
  EXPECT_FALSE(get(ca));
  put(a, ca, data(first->header, kBlock));
  settle();
  EXPECT_TRUE(get(ca)) << "and so it is again, though the bound is used up";
}

// protocol: 10.12
TEST_F(Pacing, a_silent_sender_holds_up_nobody_for_long) {
  offer(1, 4 * kBlock);
  for (std::uint32_t b_num = 0; b_num < 3; ++b_num) permit_block(1, b_num, 4 * b_num);
  const auto first = get(ca);
  ASSERT_TRUE(first && get(ca));
  pass(19 * kMillisecond);
  EXPECT_FALSE(get(ca));
  pass(2 * kMillisecond);
  EXPECT_TRUE(get(ca));
  // The sender was only slow: when it sends, its outstanding bytes count again.
  put(a, ca, data(first->header, kBlock));
  settle();
  permit_block(1, 3, 12);
  EXPECT_FALSE(get(ca));
}

}  // namespace
}  // namespace stp::test
