// SPDX-License-Identifier: BSD-3-Clause
// Rules of docs/protocol.md, sections 6, 7, 9 and 10, that hold for users at level 0.
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;
namespace flag = wire::flag;

class DataRules : public Writing {
 protected:
  std::size_t sent(Op op) const {
    std::size_t count = 0;
    for (const auto& frame : seen) count += parsed(frame).header.op() == op;
    return count;
  }
};

// protocol: 6.12
TEST_F(DataRules, send_state_on_a_control_operation_asks_for_slots_only) {
  auto nop = control(Op::kNoOperation, flag::kSendState);
  nop.header.sync = 99;
  nop.header.d_id = kRId;  // ignored, although it is an id of a Transfer
  put(a, ca, nop);
  settle();
  const auto answer = get(ca);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.op(), Op::kRequestStateResponse);
  EXPECT_EQ(answer->header.sync, 99U);
  EXPECT_EQ(answer->header.param, 63) << "Slots left beside the NOP";
  EXPECT_EQ(answer->header.d_id, wire::kNoId);
  EXPECT_EQ(answer->header.b_num, wire::kNoId);
  EXPECT_FALSE(answer->header.has(flag::kReject));
}

// protocol: 6.16
TEST_F(DataRules, a_duplicate_that_asks_for_state_is_answered_again) {
  const auto permission = grant(4'096);
  put(a, ca, data(permission, 4'096, flag::kSendState));
  const auto stu = take(a);
  ASSERT_TRUE(stu);
  arrive(b, *stu);
  ASSERT_TRUE(take(b));  // the answer is lost
  arrive(b, *stu);
  settle();
  const auto answer = get(ca);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.offset, 1U) << "B_seq";
}

// protocol: 7.2
TEST_F(DataRules, memory_is_bound_in_whole_buffers) {
  Buffers more(kBufsize, 2);
  RegionId region = kNoneId;
  const auto bind = [&](MutableBytes piece) {
    return b.node.map(listener, Direction::kReceive, kTargetBufx + 100, {&piece, 1}, region);
  };
  EXPECT_EQ(bind(more.all().first(4'095)), -EINVAL);
  EXPECT_EQ(bind(more.all().first(4'097)), -EINVAL);
  EXPECT_EQ(bind(more.all().first(0)), -EINVAL);
  EXPECT_EQ(bind(more.all()), 0);
}

// protocol: 7.14
TEST_F(DataRules, what_users_can_make_a_node_keep_is_bounded) {
  std::uint32_t id = 1'000;
  for (; id < 1'000 + 300 && cb.user.refused() == 0; ++id) {
    auto permission = cts(0, kTargetBufx, 0, 12);
    permission.header.d_id = permission.header.s_id = id;
    put(b, cb, permission);
    settle();
    while (get(ca)) {
    }
  }
  EXPECT_EQ(id, 1'000U + 256 + 1) << "Transfers with open Blocks";
}

// protocol: 9.19
TEST_F(DataRules, a_get_that_was_taken_back_is_not_placed_and_not_answered) {
  Buffers landing(kBufsize, 1);
  const auto piece = landing.all();
  RegionId region = kNoneId;
  std::uint16_t landing_mx = 0, region_mx = 0;
  ASSERT_EQ(a.node.map(endpoint_a, Direction::kReceive, 0, {&piece, 1}, region), 0);
  ASSERT_EQ(a.node.alloc_mx(region, kNoneId, permit::kData, landing_mx), 0);
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kAll, region_mx), 0);
  std::memset(target.data(), 0x5a, 4'096);
  auto mra = control(Op::kMemoryRegionAvailable);
  mra.header.param = 1;
  mra.header.mx = region_mx;
  mra.header.bufx = kTargetBufx;
  mra.header.set_t_len(4'096);
  mra.header.s_id = 22;
  put(b, cb, mra);
  settle();

  auto request = control(Op::kGet);
  request.header.param = 64;
  request.header.mx = landing_mx;
  request.header.bufx = kTargetBufx;
  request.header.d_id = 22;
  request.header.s_id = 1;
  put(a, ca, request);
  arrive(b, *take(a));
  auto complete = control(Op::kGet, flag::kFunction);
  complete.header.d_id = 22;
  complete.header.s_id = 1;
  put(a, ca, complete);
  const auto taken_back = take(a);
  ASSERT_TRUE(taken_back);
  settle();  // the answer comes now
  EXPECT_EQ(landing.data()[0], std::byte{0});
  EXPECT_EQ(a.count(Counter::kNoGrant), 1U);
  const auto before = seen.size();
  arrive(b, *taken_back);
  settle();
  EXPECT_EQ(seen.size(), before) << "FetchOp_Complete is not answered";
}

class RecoveryRules : public DataRules {
 protected:
  void SetUp() override { start({.recover = true}); }
  // Grants two Blocks of 64 KiB and returns their CTS.
  std::array<wire::Header, 2> grant_two() {
    put(a, ca, rts(2 * 65'536));
    settle();
    get(cb);
    for (std::uint32_t b_num : {0U, 1U}) put(b, cb, cts(b_num, kTargetBufx + 16 * b_num));
    settle();
    return {get(ca)->header, get(ca)->header};
  }
};

// protocol: 10.4
TEST_F(RecoveryRules, a_block_whose_turn_has_not_come_is_left_alone_while_anything_arrives) {
  const auto [first, second] = grant_two();
  for (std::uint16_t number = 0; number < 12; ++number) {
    inject_stu(stu(first, number, number * 4'096U), number * 4'096U, 4'096);
    pass(5 * kMillisecond);
  }
  EXPECT_EQ(sent(Op::kClearToSend), 2U) << "Block 1 is behind Block 0, which moves";
  inject_stu(stu(second, 0, 0), 65'536, 4'096);
  for (std::uint16_t number = 1; number < 12; ++number) {
    inject_stu(stu(second, number, number * 4'096U), 65'536 + number * 4'096U, 4'096);
    pass(5 * kMillisecond);
  }
  EXPECT_GT(sent(Op::kClearToSend), 2U) << "Block 0 has been overtaken";
}

// protocol: 10.5
TEST_F(RecoveryRules, a_repeated_grant_waits_for_credit) {
  grant(65'536);
  while (true) {  // B's user uses up all Slots of A, whose user does not read
    VcInfo info{};
    ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
    if (info.credit == 0) break;
    put(b, cb, control(Op::kNoOperation));
    settle();
  }
  pass(200 * kMillisecond);
  EXPECT_EQ(b.count(Counter::kCtsRepeated), 0U);
  while (get(ca)) {
  }
  pass(200 * kMillisecond);
  EXPECT_GT(b.count(Counter::kCtsRepeated), 0U);
  EXPECT_EQ(a.count(Counter::kSlotOverrun), 0U);
}

}  // namespace
}  // namespace stp::test
