// SPDX-License-Identifier: BSD-3-Clause
// Ethernet II and 802.3 + SNAP, tags, padding: profile section 2.
#include <gtest/gtest.h>

#include <algorithm>

#include "stp/wire/ethernet.h"
#include "tests/stp/wire/frames.h"

namespace stp::wire {
namespace {

const Header kNop = good_header(Op::kNoOperation);
const Header kData = good_header(Op::kData);

std::size_t stu_of(Bytes frame) {
  Frame out;
  EXPECT_EQ(parse(frame, kMaxStu, out), DropReason::kNone);
  return out.stu.size();
}

// protocol: 2.3
TEST(Encapsulation, BothFormsAreReadWithAndWithoutOneTag) {
  const Buffer stu = pattern(100);
  for (const bool as_snap : {false, true}) {
    const Buffer plain = as_snap ? snap(kData, stu) : ethernet2(kData, stu);
    for (const bool with_tag : {false, true}) {
      const Buffer frame = with_tag ? tagged(plain, 0xe123) : plain;
      Frame out;
      ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone) << as_snap << with_tag;
      EXPECT_EQ(out.snap, as_snap);
      EXPECT_EQ(out.vlan, with_tag ? std::optional<std::uint16_t>(0xe123) : std::nullopt);
      EXPECT_EQ(out.dst, kMacB);
      EXPECT_EQ(out.src, kMacA);
      EXPECT_EQ(out.header, kData);
      EXPECT_TRUE(std::ranges::equal(out.stu, stu));
    }
  }
}

TEST(Encapsulation, ATwiceTaggedFrameIsNotOurs) {
  EXPECT_EQ(verdict(tagged(tagged(ethernet2(kNop), 5), 6)), DropReason::kNotStp);
}

// protocol: 2.7
TEST(Encapsulation, ControlPayloadOf40To71BytesIsTheHeaderAlone) {
  for (std::size_t padding = 0; padding < kOptionSize; ++padding) {
    for (const bool with_tag : {false, true}) {
      Buffer frame = ethernet2(kNop, pattern(padding));
      if (with_tag) frame = tagged(frame, 5);
      Frame out;
      ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone) << padding;
      EXPECT_TRUE(out.option.empty()) << padding;
      EXPECT_TRUE(out.stu.empty()) << padding;
    }
  }
}

// protocol: 2.7
TEST(Encapsulation, ControlPayloadOf72BytesHasAnOptionPayload) {
  const Buffer option = pattern(kOptionSize);
  for (const Buffer& frame : {ethernet2(kNop, option), snap(kNop, option)}) {
    Frame out;
    ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone);
    EXPECT_TRUE(std::ranges::equal(out.option, option));
  }
}

// protocol: 2.7
TEST(Encapsulation, ControlPayloadOf73BytesOrMoreIsDropped) {
  for (const std::size_t length : {33u, 64u, 1400u}) {
    EXPECT_EQ(verdict(ethernet2(kNop, pattern(length))), DropReason::kBadControlLength) << length;
    EXPECT_EQ(verdict(snap(kNop, pattern(length))), DropReason::kBadControlLength) << length;
  }
}

// protocol: 2.7
TEST(Encapsulation, SnapStatesTheLengthSoAControlPayloadIsExactlyNoneOr32Bytes) {
  EXPECT_EQ(verdict(snap(kNop)), DropReason::kNone);
  for (std::size_t length = 1; length < kOptionSize; ++length) {
    EXPECT_EQ(verdict(snap(kNop, pattern(length))), DropReason::kBadControlLength) << length;
  }
}

// protocol: 2.6
TEST(Encapsulation, WhatFollowsTheSnapLengthIsPadding) {
  for (std::size_t length = 0; length < 8; ++length) {
    Buffer frame = snap(kData, pattern(length));
    frame.resize(frame.size() + 40, std::byte{0xee});
    EXPECT_EQ(stu_of(frame), length);
  }
  Buffer control = snap(kNop);
  control.resize(control.size() + kOptionSize, std::byte{0xee});
  Frame out;
  ASSERT_EQ(parse(control, kMaxStu, out), DropReason::kNone);
  EXPECT_TRUE(out.option.empty());
}

TEST(Encapsulation, ASnapLengthLargerThanTheFrameIsTruncation) {
  Buffer frame = snap(kData, pattern(10));
  frame.pop_back();
  EXPECT_EQ(verdict(frame), DropReason::kTruncated);
}

TEST(Encapsulation, ASnapLengthTooShortForTheHeaderIsTruncation) {
  for (std::size_t length = kSnapSize; length < kSnapSize + kHeaderSize; ++length) {
    Buffer frame = snap(kData, pattern(10));
    frame[12] = std::byte{0};
    frame[13] = static_cast<std::byte>(length);
    EXPECT_EQ(verdict(frame), DropReason::kTruncated) << length;
  }
}

// protocol: 2.11
TEST(Encapsulation, OtherTrafficIsToldApart) {
  Buffer arp = ethernet2(kNop);
  arp[12] = std::byte{0x08};
  arp[13] = std::byte{0x06};
  EXPECT_EQ(verdict(arp), DropReason::kNotStp);

  for (std::size_t i = 0; i < kSnapSize; ++i) {
    Buffer other_llc = snap(kNop);
    other_llc[kEthernetSize + i] ^= std::byte{0x40};
    EXPECT_EQ(verdict(other_llc), DropReason::kNotStp) << i;
  }

  Buffer too_short_for_snap = snap(kNop);
  too_short_for_snap[13] = std::byte{kSnapSize - 1};
  EXPECT_EQ(verdict(too_short_for_snap), DropReason::kNotStp);
}

TEST(Encapsulation, ALengthIsAtMost1500WhatLiesBetweenThatAndATypeIsNotOurs) {
  constexpr std::size_t kLongest = kMax8023Length - kSnapSize - kHeaderSize;
  EXPECT_EQ(stu_of(snap(kData, pattern(kLongest))), kLongest);
  EXPECT_EQ(verdict(snap(kData, pattern(kLongest + 1))), DropReason::kNotStp);
}

// protocol: 2.9
TEST(Encapsulation, AGroupOrZeroSourceIsDropped) {
  Buffer group = ethernet2(kNop);
  group[6] |= std::byte{1};
  EXPECT_EQ(verdict(group), DropReason::kBadSource);
  Buffer zero = ethernet2(kNop);
  std::fill_n(zero.begin() + 6, 6, std::byte{0});
  EXPECT_EQ(verdict(zero), DropReason::kBadSource);
}

// protocol: 2.5, 2.6
TEST(Encapsulation, DataShorterThanSixBytesGoesAsSnapAndKeepsItsLength) {
  for (std::size_t length = 0; length < 20; ++length) {
    for (const bool with_tag : {false, true}) {
      Envelope envelope = kAToB;
      if (with_tag) envelope.vlan = 5;
      Buffer frame(200);
      const Buffer stu = pattern(length);
      frame.resize(emit(envelope, kData, stu, {}, frame));
      Frame out;
      ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone) << length;
      EXPECT_EQ(out.snap, length < 6) << length;
      EXPECT_TRUE(std::ranges::equal(out.stu, stu)) << length;
      EXPECT_GE(frame.size(), 60u);
      EXPECT_EQ(frame.size(),
                std::max<std::size_t>(60, head_size(kData, length, with_tag) + length));
    }
  }
}

TEST(Encapsulation, AnAppendCountsAsPayloadSoAShortStuWithOneGoesAsEthernet2) {
  const Header header = good_header(Op::kData, flag::kLast | flag::kAppend);
  Buffer frame(200);
  frame.resize(emit(kAToB, header, {}, pattern(kAppendSize), frame));
  Frame out;
  ASSERT_EQ(parse(frame, kMaxStu, out), DropReason::kNone);
  EXPECT_FALSE(out.snap);
  EXPECT_TRUE(out.stu.empty());
  EXPECT_TRUE(std::ranges::equal(out.append, pattern(kAppendSize)));
}

// protocol: 2.4
TEST(Encapsulation, ControlGoesAsEthernet2PaddedWithZerosToTheMinimum) {
  Buffer frame(100, std::byte{0xee});
  frame.resize(emit(kAToB, kNop, {}, {}, frame));
  EXPECT_EQ(frame.size(), 60u);
  EXPECT_EQ(head_size(kNop, 0, false), kEthernetSize + kHeaderSize);
  for (std::size_t i = kEthernetSize + kHeaderSize; i < frame.size(); ++i) {
    EXPECT_EQ(frame[i], std::byte{0}) << i;
  }
}

TEST(Encapsulation, AFrameObjectUsedAgainKeepsNothingOfTheFrameBefore) {
  const Buffer option = pattern(kOptionSize);
  const Buffer first = tagged(snap(kNop, option), 5);
  const Buffer second = ethernet2(good_header(Op::kData, flag::kLast | flag::kAppend), pattern(70));
  const Buffer third = ethernet2(kNop);
  Frame out;
  ASSERT_EQ(parse(first, kMaxStu, out), DropReason::kNone);
  ASSERT_EQ(parse(second, kMaxStu, out), DropReason::kNone);
  EXPECT_FALSE(out.vlan.has_value());
  EXPECT_FALSE(out.snap);
  EXPECT_TRUE(out.option.empty());
  ASSERT_EQ(parse(third, kMaxStu, out), DropReason::kNone);
  EXPECT_TRUE(out.stu.empty());
  EXPECT_TRUE(out.append.empty());
}

}  // namespace
}  // namespace stp::wire
