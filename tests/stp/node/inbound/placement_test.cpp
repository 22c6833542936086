// SPDX-License-Identifier: BSD-3-Clause
// No frame that fails a check writes a byte; each check has its own counter (section 7).
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

namespace flag = wire::flag;

class Placement : public Writing {
 protected:
  wire::Header permission;

  void SetUp() override {
    Writing::SetUp();
    permission = grant(3 * kStu);
  }
};

TEST_F(Placement, the_right_stu_is_written) {
  inject_stu(stu(permission, 1, kStu), 0, kStu);
  EXPECT_TRUE(arrived(kStu, kStu));
}

// protocol: 7.4, 7.5, 7.6
TEST_F(Placement, an_mx_that_does_not_live) {
  auto h = stu(permission, 0, 0);
  h.mx = 999;
  expect_dropped(h, Counter::kBadMx);
  h.mx = 0;
  expect_dropped(h, Counter::kBadMx);
  ASSERT_EQ(b.node.free_mx(listener, mx), 0);
  expect_dropped(stu(permission, 0, 0), Counter::kBadMx);
}

// protocol: 7.3, 7.6
TEST_F(Placement, an_mx_of_another_endpoint_or_connection) {
  const auto other = b.open({.bufsize = kBufsize});
  Buffers foreign(kBufsize, 4);
  const auto piece = foreign.all();
  RegionId region = kNoneId;
  std::uint16_t foreign_mx = 0;
  ASSERT_EQ(b.node.map(other, Direction::kReceive, kTargetBufx, {&piece, 1}, region), 0);
  ASSERT_EQ(b.node.alloc_mx(region, kNoneId, permit::kData, foreign_mx), 0);
  auto h = stu(permission, 0, 0);
  h.mx = foreign_mx;
  expect_dropped(h, Counter::kMxNotOwned);
  for (auto byte : foreign.all()) ASSERT_EQ(byte, std::byte{0});
}

// protocol: 7.6
TEST_F(Placement, a_bufx_outside_the_mx) {
  auto h = stu(permission, 0, 0);
  h.bufx = kTargetBufx - 1;
  expect_dropped(h, Counter::kBadBufx);
  h.bufx = kTargetBufx + kBuffers;
  expect_dropped(h, Counter::kBadBufx);
  h.bufx = 0xffffffff;
  expect_dropped(h, Counter::kBadBufx);
}

// protocol: 7.6
TEST_F(Placement, an_offset_beyond_the_buffer) {
  auto h = stu(permission, 0, 0);
  h.offset = kStu;
  expect_dropped(h, Counter::kBadOffset);
  h.offset = 0xffffffff;
  expect_dropped(h, Counter::kBadOffset);
}

// protocol: 7.6
TEST_F(Placement, an_stu_that_leaves_its_buffer) {
  auto h = stu(permission, 0, 0);
  h.offset = 1;
  expect_dropped(h, Counter::kStuCrossesBuffer);
}

// protocol: 7.3, 7.6
TEST_F(Placement, an_mx_that_does_not_permit_data) {
  std::uint16_t get_only = 0;
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kGet, get_only), 0);
  auto h = stu(permission, 0, 0);
  h.mx = get_only;
  expect_dropped(h, Counter::kNoPermission);
}

// protocol: 7.6
TEST_F(Placement, an_id_never_granted) {
  auto h = stu(permission, 0, 0);
  h.d_id = kRId + 1;
  expect_dropped(h, Counter::kNoGrant);
}

// protocol: 7.6, 7.7
TEST_F(Placement, a_block_never_granted) {
  auto h = stu(permission, 0, 0);
  h.b_num = 1;
  expect_dropped(h, Counter::kBadBNum);
}

// protocol: 7.6, 7.9
TEST_F(Placement, an_address_outside_the_grant) {
  auto h = stu(permission, 3, 3 * kStu);
  expect_dropped(h, Counter::kOutsideGrant);  // inside the Mx, beyond T_len
  std::uint16_t wider = 0;
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, wider), 0);
  h = stu(permission, 0, 0);
  h.mx = wider;
  expect_dropped(h, Counter::kOutsideGrant);  // another Mx than the CTS named
}

// protocol: 8.3, 8.6
TEST_F(Placement, stu_numbers_that_do_not_fit_the_tiling) {
  expect_dropped(stu(permission, 1, 0), Counter::kBadStuNum);  // wrong tile for its number
  expect_dropped(stu(permission, 0, kStu), Counter::kBadStuNum);
  expect_dropped(stu(permission, 0, 0), Counter::kBadStuNum, 100);  // short, and not the last
  expect_dropped(stu(permission, 0, 0, flag::kLast), Counter::kBadStuNum);  // the Block goes on
  expect_dropped(stu(permission, 2, 2 * kStu), Counter::kBadStuNum);  // the last STU without Last
  expect_dropped(stu(permission, 1, kStu + 8), Counter::kBadStuNum, 8);
}

// protocol: 6.9
TEST_F(Placement, a_full_queue_drops_what_would_complete_a_block_and_a_repeat_delivers_it) {
  wire::Header nop = stu(permission, 0, 0);
  nop.op_flags = wire::op_flags(wire::Op::kNoOperation);
  for (int i = 0; i < 64; ++i) inject(b, kMacA, nop);
  inject_stu(stu(permission, 0, 0), 0, kStu);
  inject_stu(stu(permission, 1, kStu), kStu, kStu);
  inject_stu(stu(permission, 2, 2 * kStu, flag::kLast), 2 * kStu, kStu);
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 1U);
  EXPECT_TRUE(untouched(2 * kStu));
  get(cb);
  inject_stu(stu(permission, 2, 2 * kStu, flag::kLast), 2 * kStu, kStu);
  EXPECT_TRUE(arrived(3 * kStu));
}

}  // namespace
}  // namespace stp::test
