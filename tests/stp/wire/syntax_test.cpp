// SPDX-License-Identifier: BSD-3-Clause
// Every reason of form for which a frame is dropped: profile sections 3, 4 and 12.
#include "stp/wire/syntax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "tests/stp/wire/frames.h"

namespace stp::wire::syntax_test {
namespace {

constexpr std::uint32_t kHuge = std::numeric_limits<std::uint32_t>::max();

constexpr std::uint16_t function_bits(unsigned function) {
  return static_cast<std::uint16_t>(function << kFunctionShift);
}

DropReason of(const Header& header) {
  return verdict(ethernet2(header));
}

// The verdict on good_header(op, flags) after one change.
template <typename Change>
DropReason changed(Op op, std::uint16_t flags, Change change) {
  Header header = good_header(op, flags);
  change(header);
  return of(header);
}

TEST(Syntax, AFrameShorterThanAHeaderIsTruncated) {
  Buffer frame = ethernet2(good_header(Op::kNoOperation));
  frame.pop_back();
  EXPECT_EQ(verdict(frame), DropReason::kTruncated);
}

// protocol: 3.4, 12.1
TEST(Syntax, ACodeThatIsNoOperationIsDropped) {
  for (unsigned code = 0; code < 32; ++code) {
    const Op op = static_cast<Op>(code);
    const bool known = std::ranges::find(kOperations, op) != kOperations.end();
    EXPECT_EQ(of(good_header(op)), known ? DropReason::kNone : DropReason::kUnknownOp) << code;
  }
}

// protocol: 3.7
TEST(Syntax, TheReservedBitIsIllegalEverywhere) {
  for (const Op op : kOperations) {
    EXPECT_EQ(of(good_header(op, flag::kReserved)), DropReason::kBadFlags) << short_name(op);
  }
}

// protocol: 3.7
TEST(Syntax, AFunctionBelongsToGetAlone) {
  for (const Op op : kOperations) {
    if (op == Op::kGet) continue;
    for (unsigned function = 1; function < 8; ++function) {
      EXPECT_EQ(of(good_header(op, function_bits(function))), DropReason::kBadFlags)
          << short_name(op);
    }
  }
}

// protocol: 3.6, 3.7
TEST(Syntax, EveryFunctionOfGetButSixIsLegal) {
  const Buffer operands = pattern(kOptionSize);
  for (unsigned function = 0; function < 8; ++function) {
    const Header header = good_header(Op::kGet, function_bits(function));
    EXPECT_EQ(verdict(ethernet2(header, operands)),
              function == 6 ? DropReason::kBadFlags : DropReason::kNone)
        << function;
  }
}

// protocol: 3.13
TEST(Syntax, OperandsMustComeWithFetchAddAndCompareAndSwapUnlessRefused) {
  for (unsigned function = 0; function < 8; ++function) {
    if (function == 6) continue;
    const bool operands = function == 4 || function == 5;
    EXPECT_EQ(of(good_header(Op::kGet, function_bits(function))),
              operands ? DropReason::kBadControlLength : DropReason::kNone)
        << function;
    const auto refused = static_cast<std::uint16_t>(function_bits(function) | flag::kReject);
    EXPECT_EQ(of(good_header(Op::kGet, refused)), DropReason::kNone) << function;
  }
}

// protocol: 3.7, 3.8
TEST(Syntax, AnAppendBelongsToTheLastStuOfABlock) {
  const Buffer body = pattern(kAppendSize + 10);
  const Header last = good_header(Op::kData, flag::kAppend | flag::kLast);
  EXPECT_EQ(verdict(ethernet2(last, body)), DropReason::kNone);
  EXPECT_EQ(verdict(ethernet2(good_header(Op::kData, flag::kAppend), body)), DropReason::kBadFlags);
  for (const Op op : kOperations) {
    if (op == Op::kData) continue;
    EXPECT_EQ(of(good_header(op, flag::kAppend | flag::kLast)), DropReason::kBadFlags)
        << short_name(op);
  }
}

TEST(Syntax, AnAppendThatDoesNotFitIsTruncated) {
  const Header header = good_header(Op::kData, flag::kAppend | flag::kLast);
  EXPECT_EQ(verdict(ethernet2(header, pattern(kAppendSize - 1))), DropReason::kTruncated);
  EXPECT_EQ(verdict(snap(header, pattern(kAppendSize - 1))), DropReason::kTruncated);
  EXPECT_EQ(verdict(snap(header, pattern(kAppendSize))), DropReason::kNone);
}

// protocol: 3.9
TEST(Syntax, AFlagThatAnOperationHasNoUseForIsNotLookedAt) {
  constexpr std::uint16_t kOthers = flag::kReject | flag::kLast | flag::kOrder | flag::kSendState |
                                    flag::kInterrupt | flag::kSilent;
  for (const Op op : kOperations) {
    EXPECT_EQ(of(good_header(op, kOthers)), DropReason::kNone) << short_name(op);
  }
}

// protocol: 3.11
TEST(Syntax, BufsizeIs8To30) {
  for (const Op op : {Op::kRequestConnection, Op::kConnectionAnswer}) {
    for (const std::uint32_t bufsize : {0u, 7u, 31u, 32u, 0x100u + kMinBufsize, kHuge}) {
      EXPECT_EQ(changed(op, 0, [&](Header& h) { h.bufx = bufsize; }), DropReason::kBadExponent)
          << short_name(op) << bufsize;
    }
    EXPECT_EQ(changed(op, 0, [](Header& h) { h.bufx = 8; }), DropReason::kNone);
    EXPECT_EQ(changed(op, 0, [](Header& h) { h.bufx = 30; }), DropReason::kNone);
  }
}

// protocol: 3.11
TEST(Syntax, MaxStuIs8To16) {
  for (const Op op : {Op::kRequestConnection, Op::kConnectionAnswer}) {
    for (const std::uint32_t max_stu : {0u, 7u, 17u, 64u, 0x10000u + kMinMaxStu, kHuge}) {
      EXPECT_EQ(changed(op, 0, [&](Header& h) { h.sync = max_stu; }), DropReason::kBadExponent)
          << short_name(op) << max_stu;
    }
    EXPECT_EQ(changed(op, 0, [](Header& h) { h.sync = 8; }), DropReason::kNone);
    EXPECT_EQ(changed(op, 0, [](Header& h) { h.sync = 16; }), DropReason::kNone);
  }
}

// protocol: 3.11
TEST(Syntax, MaxBlockOfRtsAndBlocksizeOfCtsAre8To31) {
  for (const std::uint16_t exponent : std::initializer_list<std::uint16_t>{0, 7, 32, 64, 0xffff}) {
    EXPECT_EQ(changed(Op::kRequestToSend, 0, [&](Header& h) { h.mx = exponent; }),
              DropReason::kBadExponent)
        << exponent;
    EXPECT_EQ(changed(Op::kClearToSend, 0, [&](Header& h) { h.param = exponent; }),
              DropReason::kBadExponent)
        << exponent;
  }
  for (const std::uint16_t exponent : std::initializer_list<std::uint16_t>{8, 31}) {
    EXPECT_EQ(changed(Op::kRequestToSend, 0, [&](Header& h) { h.mx = exponent; }),
              DropReason::kNone);
    EXPECT_EQ(changed(Op::kClearToSend, 0, [&](Header& h) { h.param = exponent; }),
              DropReason::kNone);
  }
}

// protocol: 9.8
TEST(Syntax, TLenIsNotZeroInRtrAndRmr) {
  for (const Op op : {Op::kRequestToReceive, Op::kRequestMemoryRegion}) {
    EXPECT_EQ(changed(op, 0, [](Header& h) { h.set_t_len(0); }), DropReason::kZeroLength);
    EXPECT_EQ(changed(op, 0, [](Header& h) { h.set_t_len(std::uint64_t{1} << 32); }),
              DropReason::kNone);
  }
  EXPECT_EQ(changed(Op::kRequestToSend, 0, [](Header& h) { h.set_t_len(0); }), DropReason::kNone)
      << "a Write of 0 bytes is legal";
}

// protocol: 12.3
TEST(Syntax, ARefusalNeedsToTellNothingButWhatItRefuses) {
  const auto nothing = [](Header& h) { h.param = h.mx = 0, h.bufx = h.offset = h.sync = 0; };
  EXPECT_EQ(
      changed(Op::kConnectionAnswer, flag::kReject, [&](Header& h) { nothing(h), h.s_port = 0; }),
      DropReason::kNone);
  EXPECT_EQ(changed(Op::kRequestAnswer, flag::kReject, nothing), DropReason::kNone);
  EXPECT_EQ(changed(Op::kMemoryRegionAvailable, flag::kReject, nothing), DropReason::kNone);
}

TEST(Syntax, RejectExcusesNoRequest) {
  EXPECT_EQ(changed(Op::kRequestConnection, flag::kReject, [](Header& h) { h.sync = 0; }),
            DropReason::kBadExponent);
  EXPECT_EQ(changed(Op::kRequestToSend, flag::kReject, [](Header& h) { h.mx = 0; }),
            DropReason::kBadExponent);
  EXPECT_EQ(changed(Op::kRequestToReceive, flag::kReject, [](Header& h) { h.b_num = 0; }),
            DropReason::kZeroLength);
}

TEST(Syntax, SPortZeroIsIllegalButInARefusedConnection) {
  const auto no_port = [](Header& h) { h.s_port = 0; };
  for (const Op op : kOperations) {
    EXPECT_EQ(changed(op, 0, no_port), DropReason::kZeroPort) << short_name(op);
    EXPECT_EQ(changed(op, flag::kReject, no_port),
              op == Op::kConnectionAnswer ? DropReason::kNone : DropReason::kZeroPort)
        << short_name(op);
  }
}

// protocol: 8.7
TEST(Syntax, AnStuHasAtMostTheBytesThatTheReceiverAnnounced) {
  const Header header = good_header(Op::kData);
  const Header with_append = good_header(Op::kData, flag::kLast | flag::kAppend);
  for (unsigned max_stu = kMinMaxStu; max_stu <= kMaxMaxStu; ++max_stu) {
    const std::size_t longest = std::size_t{1} << max_stu;
    Frame out;
    EXPECT_EQ(parse(ethernet2(header, pattern(longest)), max_stu, out), DropReason::kNone);
    EXPECT_EQ(parse(ethernet2(header, pattern(longest + 1)), max_stu, out),
              DropReason::kStuTooLong);
    EXPECT_EQ(parse(ethernet2(with_append, pattern(longest + kAppendSize)), max_stu, out),
              DropReason::kNone);
    EXPECT_EQ(parse(ethernet2(with_append, pattern(longest + kAppendSize + 1)), max_stu, out),
              DropReason::kStuTooLong);
  }
}

Buffer with_cksum(const Header& header, Bytes payload, Bytes append) {
  Envelope envelope = kAToB;
  envelope.checksum = true;
  Buffer frame(payload.size() + append.size() + 100);
  frame.resize(emit(envelope, header, payload, append, frame));
  return frame;
}

// protocol: 4.1, 4.3
TEST(Syntax, CksumCoversHeaderStuAndAppend) {
  const Header header = good_header(Op::kData, flag::kLast | flag::kAppend);
  const Buffer good = with_cksum(header, pattern(33), pattern(kAppendSize));
  ASSERT_EQ(verdict(good), DropReason::kNone);
  for (const std::size_t at :
       {kEthernetSize + at::kDKey, kEthernetSize + kHeaderSize + 32, good.size() - 1}) {
    Buffer bad = good;
    bad[at] ^= std::byte{4};
    EXPECT_EQ(verdict(bad), DropReason::kBadChecksum) << at;
  }
}

// protocol: 4.1
TEST(Syntax, CksumOfAControlOperationCoversItsOptionPayloadButNoPadding) {
  const Header header = good_header(Op::kNoOperation);
  Buffer padded = with_cksum(header, {}, {});
  padded.back() = std::byte{0xee};
  EXPECT_EQ(verdict(padded), DropReason::kNone);
  Buffer with_option = with_cksum(header, pattern(kOptionSize), {});
  EXPECT_EQ(verdict(with_option), DropReason::kNone);
  with_option.back() ^= std::byte{1};
  EXPECT_EQ(verdict(with_option), DropReason::kBadChecksum);
}

// protocol: 4.2
TEST(Syntax, ACksumThatWouldBeZeroIsSentAsAllOnesAndVerified) {
  Header header = good_header(Op::kNoOperation);
  Frame out;
  ASSERT_EQ(parse(with_cksum(header, {}, {}), kMaxStu, out), DropReason::kNone);
  header.param = out.header.cksum;  // makes the checksum zero
  Buffer frame = with_cksum(header, {}, {});
  ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone);
  EXPECT_EQ(out.header.cksum, 0xffff);
  frame[kEthernetSize + at::kSId] ^= std::byte{1};
  EXPECT_EQ(verdict(frame), DropReason::kBadChecksum);
}

// protocol: 4.3, 8.7
TEST(Syntax, AnStuThatStandsApartIsReadAsIfItFollowed) {
  const Buffer stu = pattern(501), append = pattern(kAppendSize);
  for (const bool appends : {false, true}) {
    const Header header =
        good_header(Op::kData, flag::kLast | (appends ? flag::kAppend : std::uint16_t{0}));
    const Buffer whole = with_cksum(header, stu, appends ? append : Buffer{});
    const std::size_t head = head_size(header, stu.size(), false);
    const Bytes apart = Bytes(whole).subspan(head);
    Frame joined, split;
    ASSERT_EQ(parse(whole, kMaxStu, joined), DropReason::kNone);
    ASSERT_EQ(parse(Bytes(whole).first(head), kMaxStu, split, apart), DropReason::kNone);
    EXPECT_TRUE(std::ranges::equal(split.stu, joined.stu));
    EXPECT_TRUE(std::ranges::equal(split.append, joined.append));
    Buffer wrong(apart.begin(), apart.end());
    wrong.back() ^= std::byte{1};
    EXPECT_EQ(parse(Bytes(whole).first(head), kMaxStu, split, wrong), DropReason::kBadChecksum);
    EXPECT_EQ(parse(Bytes(whole).first(head), kMaxStu, split, pattern((1U << kMaxStu) + 65)),
              DropReason::kStuTooLong);
  }
}

// protocol: 4.2
TEST(Syntax, CksumZeroIsNotLookedAt) {
  Header header = good_header(Op::kNoOperation);
  header.param = 0x1234;
  header.cksum = 0;
  EXPECT_EQ(of(header), DropReason::kNone);
}

// protocol: 4.4
TEST(Syntax, WithoutChecksumCksumIsSentAsZeroWhateverTheHeaderHolds) {
  Header header = good_header(Op::kNoOperation);
  header.cksum = 0x1234;
  Buffer frame(100);
  frame.resize(emit(kAToB, header, {}, {}, frame));
  Frame out;
  ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone);
  EXPECT_EQ(out.header.cksum, 0);
}

}  // namespace
}  // namespace stp::wire::syntax_test
