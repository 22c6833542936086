// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/padding.h"

#include <gtest/gtest.h>

#include <vector>

#include "stp/wire/frame.h"

namespace stp::wire {
namespace {

constexpr MacAddr kTo{{2, 0, 0, 0, 0, 1}}, kFrom{{2, 0, 0, 0, 0, 2}};

Header sized(Op op, std::uint32_t max_stu, const Padding& padding) {
  Header h;
  h.op_flags = op_flags(op);
  h.s_port = 5;
  h.bufx = 12;
  h.sync = max_stu;
  h.b_num = padding.word();
  return h;
}

// What a receiver says to `header` and `length` bytes in all behind the Ethernet header.
DropReason verdict(const Header& header, std::size_t length, Frame& out, bool checksum = false) {
  static std::vector<std::byte> frame;
  std::vector<std::byte> option(kOptionSize, std::byte{3});
  frame.assign(kMaxHeadSize + 70'000, std::byte{0xee});
  const auto payload = padding_of(header).option ? Bytes(option) : Bytes();
  emit({kTo, kFrom, {}, checksum}, header, payload, {}, frame);
  return parse(Bytes(frame).first(kEthernetSize + length), kMaxMaxStu, out);
}

// protocol: 13.20
TEST(Padding, of_a_request_is_as_long_as_the_stus_that_it_announces) {
  Frame out;
  for (unsigned stu = kMinMaxStu; stu <= kMaxMaxStu; ++stu) {
    const auto rc = sized(Op::kRequestConnection, stu, {.known = true, .stu = stu});
    const auto length = (std::size_t{1} << stu) + 104;
    EXPECT_EQ(padded_length(stu), length);
    EXPECT_EQ(verdict(rc, length, out), DropReason::kNone);
    EXPECT_TRUE(out.padded);
    EXPECT_TRUE(out.option.empty());
    for (const auto wrong : {length - 1, length + 1, kHeaderSize + kOptionSize + 1, length / 2})
      EXPECT_EQ(verdict(rc, wrong, out), DropReason::kBadControlLength) << wrong;
    EXPECT_EQ(verdict(rc, kMinPayload, out), DropReason::kNone);
    EXPECT_FALSE(out.padded) << "as long as ever";
    auto other = rc;
    other.sync = stu == kMinMaxStu ? stu + 1 : stu - 1;
    EXPECT_EQ(verdict(other, length, out), DropReason::kBadControlLength);
  }
}

// protocol: 13.20
TEST(Padding, of_an_answer_is_no_longer_than_what_it_answers) {
  Frame out;
  const auto says = [&](unsigned r_max_stu, unsigned asked, unsigned stu) {
    const auto ca =
        sized(Op::kConnectionAnswer, r_max_stu, {.known = true, .asked = asked, .stu = stu});
    return verdict(ca, padded_length(stu), out);
  };
  EXPECT_EQ(says(13, 13, 13), DropReason::kNone);
  EXPECT_EQ(says(13, 10, 10), DropReason::kNone);
  EXPECT_EQ(says(10, 13, 10), DropReason::kNone);
  EXPECT_EQ(says(13, 13, 9), DropReason::kNone) << "the RC has been repeated with less";
  EXPECT_EQ(says(13, 10, 11), DropReason::kBadControlLength);
  EXPECT_EQ(says(10, 13, 11), DropReason::kBadControlLength);
  EXPECT_EQ(says(13, 17, 13), DropReason::kBadControlLength);
}

// protocol: 4.1, 13.20
TEST(Padding, follows_an_option_payload_and_is_not_in_the_checksum) {
  Frame out;
  const auto rc = sized(Op::kRequestConnection, 9, {.known = true, .option = true, .stu = 9});
  EXPECT_EQ(verdict(rc, padded_length(9), out, true), DropReason::kNone);
  EXPECT_EQ(out.option.size(), kOptionSize);
  EXPECT_EQ(out.option.front(), std::byte{3});
}

// protocol: 2.7, 13.20
TEST(Padding, is_of_connection_requests_and_their_answers_only) {
  Frame out;
  const Padding padding{.known = true, .asked = 9, .stu = 9};
  for (const Op op : kOperations) {
    if (op == Op::kData || op == Op::kRequestConnection || op == Op::kConnectionAnswer) continue;
    EXPECT_EQ(verdict(sized(op, 9, padding), padded_length(9), out), DropReason::kBadControlLength);
  }
  auto refusal = sized(Op::kConnectionAnswer, 9, padding);
  refusal.op_flags |= flag::kReject;
  EXPECT_EQ(verdict(refusal, padded_length(9), out), DropReason::kBadControlLength);
  EXPECT_EQ(verdict(sized(Op::kRequestConnection, 9, {.stu = 9}), padded_length(9), out),
            DropReason::kBadControlLength);
}

}  // namespace
}  // namespace stp::wire
