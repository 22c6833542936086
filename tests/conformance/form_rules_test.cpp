// SPDX-License-Identifier: BSD-3-Clause
// Rules of docs/protocol.md, sections 2 to 4 and 12: the form of frames.
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Header;
using wire::Op;
namespace flag = wire::flag;

constexpr MacAddr kFrom{{2, 0, 0, 0, 0, 1}}, kTo{{2, 0, 0, 0, 0, 2}};
using Frame = std::vector<std::byte>;

Frame frame_of(const Header& h, std::size_t stu = 0, bool checksum = false,
               const MacAddr& from = kFrom) {
  const std::vector<std::byte> payload(stu, std::byte{7});
  Frame frame(wire::kMaxHeadSize + wire::kMinPayload + stu);
  frame.resize(wire::emit({kTo, from, {}, checksum}, h, payload, {}, frame));
  return frame;
}
DropReason verdict(const Frame& frame) {
  wire::Frame out;
  return wire::parse(frame, 10, out);
}
Header header(Op op, std::uint16_t flags = 0) {
  Header h;
  h.op_flags = wire::op_flags(op, flags);
  h.s_port = 1;
  return h;
}

class FormRules : public Writing {};

// protocol: 3.3, 3.14
TEST_F(FormRules, fields_that_an_operation_does_not_use_are_sent_as_0_and_not_looked_at) {
  const auto& rc = parsed(seen.front()).header;
  ASSERT_EQ(rc.op(), Op::kRequestConnection);
  EXPECT_EQ(rc.mx, 0) << "EtherType";
  EXPECT_EQ(rc.d_port, 0);
  EXPECT_EQ(rc.d_key, 0U);
  EXPECT_EQ(rc.b_num, 0U);

  b.stock(listener);
  auto other = rc;
  other.offset ^= 1;  // another Key, so another connection
  other.mx = 0x8181;
  other.d_port = 77;
  other.d_key = 0xdeadbeef;
  other.b_num = 5;
  inject(b, kMacA, other);
  EXPECT_EQ(b.node.vc_count(), 2U);
}

// protocol: 3.12
TEST_F(FormRules, a_block_has_no_more_stus_than_its_number_can_count) {
  // s is 2^12 here, so 2^27 is the longest Block.
  put(b, cb, cts(0, kTargetBufx, 0, kBufsize + 15));
  settle();
  EXPECT_EQ(cb.user.refused(), 0U);
  auto longer = cts(0, kTargetBufx, 0, kBufsize + 16);
  longer.header.s_id = kRId + 1;
  put(b, cb, longer);
  settle();
  EXPECT_EQ(cb.user.refused(), 1U);
}

// protocol: 4.5
TEST(FormRulesOfFrames, a_checksum_is_verified_after_the_lengths_and_before_other_fields) {
  auto damaged = [](Header h, std::size_t stu = 0) {
    auto frame = frame_of(h, stu, true);
    frame[wire::kEthernetSize + wire::at::kSId] ^= std::byte{1};
    return verdict(frame);
  };
  EXPECT_EQ(damaged(header(Op::kNoOperation)), DropReason::kBadChecksum);
  EXPECT_EQ(damaged(header(static_cast<Op>(0x0a))), DropReason::kUnknownOp);
  EXPECT_EQ(damaged(header(Op::kNoOperation, flag::kReserved)), DropReason::kBadFlags);
  EXPECT_EQ(damaged(header(Op::kData), 1'025), DropReason::kStuTooLong);
  auto zero_port = header(Op::kNoOperation);
  zero_port.s_port = 0;
  EXPECT_EQ(damaged(zero_port), DropReason::kBadChecksum);
  auto rts = header(Op::kRequestToSend);
  rts.mx = 99;
  EXPECT_EQ(damaged(rts), DropReason::kBadChecksum);
}

// protocol: 12.2
TEST(FormRulesOfFrames, of_two_faults_the_one_looked_for_first_counts) {
  const MacAddr group{{3, 0, 0, 0, 0, 1}};
  auto worst = header(static_cast<Op>(0x0a), flag::kReserved);
  worst.s_port = 0;
  auto not_stp = frame_of(worst, 0, false, group);
  not_stp[12] = std::byte{0x86};
  EXPECT_EQ(verdict(not_stp), DropReason::kNotStp);
  EXPECT_EQ(verdict(frame_of(worst, 0, false, group)), DropReason::kBadSource);
  EXPECT_EQ(verdict(frame_of(worst)), DropReason::kUnknownOp);
  worst.op_flags = wire::op_flags(Op::kData, flag::kReserved);
  EXPECT_EQ(verdict(frame_of(worst, 1'025)), DropReason::kBadFlags);
  worst.op_flags = wire::op_flags(Op::kData);
  EXPECT_EQ(verdict(frame_of(worst, 1'025)), DropReason::kStuTooLong);
  worst.op_flags = wire::op_flags(Op::kRequestToReceive);
  EXPECT_EQ(verdict(frame_of(worst, 33)), DropReason::kBadControlLength);
  EXPECT_EQ(verdict(frame_of(worst)), DropReason::kZeroPort);
  worst.s_port = 1;
  EXPECT_EQ(verdict(frame_of(worst)), DropReason::kZeroLength);
}

}  // namespace
}  // namespace stp::test
