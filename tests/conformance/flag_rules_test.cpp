// SPDX-License-Identifier: BSD-3-Clause
// The flags Interrupt, Silent, Order and Send_state, and the three forms of Request_State
// (docs/protocol.md, sections 3, 6 and 8).
#include <algorithm>

#include "tests/stp/transfer/managed_pair.h"

namespace stp::test {
namespace {

using wire::Op;
namespace flag = wire::flag;

class FlagRules : public Writing {
 protected:
  std::vector<wire::Header> stus() const {
    std::vector<wire::Header> all;
    for (const auto& frame : seen)
      if (const auto h = parsed(frame).header; h.op() == Op::kData) all.push_back(h);
    return all;
  }
};

// protocol: 3.5, 8.11
TEST_F(FlagRules, interrupt_wakes_a_sleeping_user_when_the_block_is_there) {
  const auto permission = grant(3 * 4'096);
  put(a, ca, data(permission, 3 * 4'096, flag::kInterrupt));
  cb.user.begin_sleep();
  b.events.clear();
  for (int left = 3; left > 0; --left) {
    const auto stu = take(a);
    ASSERT_TRUE(stu);
    EXPECT_EQ(parsed(*stu).header.has(flag::kInterrupt), left == 1) << "the Last one has it";
    EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "nothing is there yet";
    arrive(b, *stu);
  }
  EXPECT_TRUE(has_event(b, Event::Kind::kWake)) << "before anything else happens";
  const auto header = get(cb);
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->header.has(flag::kInterrupt));
  cb.user.end_sleep();
}

// protocol: 6.2, 8.9, 8.11
TEST_F(FlagRules, silent_tells_nobody_wakes_nobody_and_uses_no_slot) {
  const auto permission = grant(3 * 4'096);
  VcInfo before{}, after{};
  ASSERT_EQ(a.node.vc_info(ca.id, before), 0);
  cb.user.begin_sleep();
  b.events.clear();
  put(a, ca, data(permission, 3 * 4'096, flag::kSilent));
  settle();
  ASSERT_EQ(a.node.vc_info(ca.id, after), 0);
  EXPECT_TRUE(arrived(3 * 4'096));
  EXPECT_FALSE(get(cb));
  EXPECT_FALSE(has_event(b, Event::Kind::kWake));
  EXPECT_EQ(after.credit, before.credit);
  for (const auto& h : stus()) EXPECT_TRUE(h.has(flag::kSilent)) << "on each of its STUs";
  cb.user.end_sleep();
}

// protocol: 8.9
TEST_F(FlagRules, the_last_stu_says_whether_a_block_is_silent) {
  const auto permission = grant(2 * 4'096);
  inject_stu(stu(permission, 1, 4'096, flag::kLast | flag::kSilent), 4'096, 4'096);
  inject_stu(stu(permission, 0, 0), 0, 4'096);
  EXPECT_EQ(b.count(Counter::kRxBlocks), 1U);
  EXPECT_FALSE(get(cb));

  put(b, cb, cts(0, kTargetBufx, 0));
  auto next = cts(0);
  next.header.d_id = next.header.s_id = 77;
  put(b, cb, next);
  settle();
  auto other = permission;
  other.s_id = 77;
  inject_stu(stu(other, 0, 0, flag::kSilent), 0, 4'096);
  inject_stu(stu(other, 1, 4'096, flag::kLast), 4'096, 4'096);
  EXPECT_TRUE(get(cb));
}

// protocol: 3.5, 8.11
TEST_F(FlagRules, order_stands_on_every_stu_and_in_the_header_that_is_delivered) {
  const auto permission = grant(3 * 4'096);
  put(a, ca, data(permission, 3 * 4'096, flag::kOrder));
  settle();
  ASSERT_EQ(stus().size(), 3U);
  for (const auto& h : stus()) EXPECT_TRUE(h.has(flag::kOrder));
  const auto header = get(cb);
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->header.has(flag::kOrder));
}

// protocol: 9.4
TEST_F(FlagRules, no_grant_is_larger_than_max_block) {
  put(a, ca, rts(4 * 65'536));
  settle();
  get(cb);
  put(b, cb, cts(0, kTargetBufx, 0, kBlocksize + 1));
  settle();
  EXPECT_EQ(cb.user.refused(), 1U);
  EXPECT_FALSE(get(ca));
  put(b, cb, cts(0, kTargetBufx, 0, kBlocksize));
  settle();
  EXPECT_TRUE(get(ca));
}

// T_len has 64 bits: a Block beyond 4 GiB can be granted, up to the end of the Transfer.
// protocol: 3.10, 7.9
TEST_F(FlagRules, a_transfer_may_be_longer_than_32_bits_can_count) {
  constexpr std::uint64_t kLength = (std::uint64_t{5} << 32) + 4'096;
  constexpr unsigned kLong = kBufsize + 15;
  auto request = rts(kLength);
  request.header.mx = kLong;
  put(a, ca, request);
  settle();
  const auto offer = get(cb);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->header.t_len(), kLength);
  const auto last = static_cast<std::uint32_t>(kLength >> kLong);
  put(b, cb, cts(last + 1, kTargetBufx, 0, kLong));
  put(b, cb, cts(last, kTargetBufx, 0, kLong));
  settle();
  EXPECT_EQ(cb.user.refused(), 1U) << "there is no such Block";
  const auto permission = get(ca);
  ASSERT_TRUE(permission);
  inject_stu(stu(permission->header, 1, 4'096), 4'096, 4'096);
  EXPECT_EQ(b.count(Counter::kOutsideGrant), 1U) << "beyond the end of the Transfer";
  put(a, ca, data(permission->header, 4'096));
  settle();
  EXPECT_TRUE(get(cb));
  EXPECT_TRUE(arrived(4'096));
}

class OneSideChecksums : public FlagRules {
 protected:
  void SetUp() override { connect({.bufsize = kBufsize, .checksum = true}, {.bufsize = kBufsize}); }
};

// protocol: 4.3, 4.4
TEST_F(OneSideChecksums, each_side_decides_for_itself_whether_it_sends_checksums) {
  put(a, ca, control(Op::kNoOperation));
  put(b, cb, control(Op::kNoOperation));
  settle();
  EXPECT_TRUE(get(ca) && get(cb));
  for (const auto& frame : seen) {
    const auto f = parsed(frame);
    EXPECT_EQ(f.header.cksum != 0, f.src == kMacA) << wire::short_name(f.header.op());
  }
}

class ManagedFlags : public Managed {};

// protocol: 8.11, 9.12
TEST_F(ManagedFlags, a_write_carries_the_flags_its_user_wants) {
  ASSERT_EQ(sb.sequencer->post_receive(1, landing(sb, 0, 20'000)), 0);
  ASSERT_EQ(sa.sequencer->write(1, at(0), 20'000, {.flags = flag::kInterrupt | flag::kOrder}), 0);
  run(10 * kMillisecond);
  ASSERT_TRUE(sb.find(Completion::Kind::kReceive, 1));
  std::size_t stus = 0;
  for (const auto& frame : seen) {
    const auto h = parsed(frame).header;
    if (h.op() != Op::kData) continue;
    ++stus;
    EXPECT_TRUE(h.has(flag::kOrder));
    EXPECT_EQ(h.has(flag::kInterrupt), h.has(flag::kLast));
    EXPECT_EQ(h.has(flag::kSendState), h.has(flag::kLast));
    EXPECT_FALSE(h.has(flag::kSilent)) << "the receiver's layer counts Blocks by their headers";
  }
  EXPECT_GT(stus, 1U);
}

// protocol: 9.2, 9.24
TEST_F(ManagedFlags, an_offer_without_room_is_seen_first_and_granted_later) {
  ASSERT_EQ(sa.sequencer->write(1, at(0), 1'000), 0);
  run(10 * kMillisecond);
  const auto count = [&](Op op) {
    return std::count_if(seen.begin(), seen.end(),
                         [&](const Frame& f) { return parsed(f).header.op() == op; });
  };
  EXPECT_GT(count(Op::kRequestAnswer), 0);
  EXPECT_EQ(count(Op::kClearToSend), 0);
  ASSERT_EQ(sb.sequencer->post_receive(1, landing(sb, 0, 1'000)), 0);
  run(10 * kMillisecond);
  EXPECT_EQ(count(Op::kClearToSend), 1);
  EXPECT_TRUE(sa.find(Completion::Kind::kWrite, 1));
}

}  // namespace
}  // namespace stp::test
