// SPDX-License-Identifier: BSD-3-Clause
// A frame that matches the expectation passes parse() and has the expected content.
#include "stp/wire/expected_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/stp/wire/frames.h"

namespace stp::wire {
namespace {

constexpr std::uint16_t kDPort = 0x1234, kSPort = 0x5678;
constexpr std::uint32_t kDKey = 0x9abcdef0;
const ExpectedData kExpected(kMacB, kMacA, kDPort, kSPort, kDKey);

Header data_header(std::uint16_t flags = flag::kSilent | flag::kLast) {
  auto header = good_header(Op::kData, flags);
  header.d_port = kDPort;
  header.s_port = kSPort;
  header.d_key = kDKey;
  header.cksum = 0;
  return header;
}

bool matches(Bytes frame) {
  return frame.size() >= ExpectedData::kHead && ExpectedData::may_match(frame.data()) &&
         kExpected.matches(frame.data());
}

// Checks what a Node assumes about a matching frame, which it does not parse.
void expect_parsed_alike(Bytes frame) {
  Frame out;
  ASSERT_EQ(parse(frame, kMaxMaxStu, out), DropReason::kNone);
  EXPECT_EQ(out.dst, kMacB);
  EXPECT_EQ(out.src, kMacA);
  EXPECT_EQ(out.vlan, std::nullopt);
  EXPECT_FALSE(out.snap);
  EXPECT_EQ(out.header, decode(frame.data() + kEthernetSize));
  EXPECT_EQ(out.header.op(), Op::kData);
  EXPECT_EQ(out.header.d_port, kDPort);
  EXPECT_EQ(out.header.s_port, kSPort);
  EXPECT_EQ(out.header.d_key, kDKey);
  EXPECT_TRUE(out.append.empty());
  EXPECT_EQ(out.stu.data(), frame.data() + ExpectedData::kHead);
  EXPECT_EQ(out.stu.size(), frame.size() - ExpectedData::kHead);
}

TEST(ExpectedData, MatchesDataWithEveryLegalFlag) {
  for (unsigned flags = 0; flags <= kFlagsMask; ++flags) {
    const auto frame = ethernet2(data_header(static_cast<std::uint16_t>(flags)), pattern(8));
    const bool plain = verdict(frame) == DropReason::kNone && (flags & flag::kAppend) == 0;
    ASSERT_EQ(matches(frame), plain) << flags;
    if (plain) expect_parsed_alike(frame);
  }
}

TEST(ExpectedData, MatchesWhateverBelongsToTheStu) {
  auto header = data_header();
  header.param = 0xffff;
  header.mx = 0xffff;
  header.bufx = header.offset = header.sync = header.b_num = header.d_id = header.s_id = ~0U;
  for (const std::size_t length : {6U, 8U, 1024U, 8192U})
    EXPECT_TRUE(matches(ethernet2(header, pattern(length)))) << length;
}

// A change of any compared bit must prevent a match.
TEST(ExpectedData, MatchesNoOtherHead) {
  const auto good = ethernet2(data_header(), pattern(8));
  constexpr std::size_t kEnd = kEthernetSize + at::kCksum + 2;
  for (std::size_t bit = 0; bit < 8 * kEnd; ++bit) {
    auto frame = good;
    frame[bit / 8] ^= std::byte{1} << bit % 8;
    const auto place = bit / 8;
    const bool flags = place == kEthernetSize + at::kOpFlags || place == kEthernetSize + 1;
    const bool stu_num = place / 2 == (kEthernetSize + at::kParam) / 2;
    if (!flags) {
      ASSERT_EQ(matches(frame), stu_num) << bit;
    }
    if (matches(frame)) expect_parsed_alike(frame);
  }
}

TEST(ExpectedData, MatchesNeitherTagsNorSnapNorCksum) {
  const auto stu = pattern(100);
  EXPECT_FALSE(matches(tagged(ethernet2(data_header(), stu), 5)));
  EXPECT_FALSE(matches(snap(data_header(), stu)));
  Buffer summed(200);
  auto envelope = kAToB;
  envelope.checksum = true;
  summed.resize(emit(envelope, data_header(), stu, {}, summed));
  ASSERT_EQ(verdict(summed), DropReason::kNone);
  EXPECT_FALSE(matches(summed));
}

TEST(ExpectedData, NothingMatchesOneThatExpectsNothing) {
  constexpr MacAddr kGroup{{0x03, 0, 0, 0, 0, 1}};
  const auto frame = ethernet2(data_header(), pattern(8));
  for (const auto& none : {ExpectedData{}, ExpectedData(kMacB, kMacA, kDPort, 0, kDKey),
                           ExpectedData(kMacB, kGroup, kDPort, kSPort, kDKey),
                           ExpectedData(kMacB, MacAddr{}, kDPort, kSPort, kDKey)}) {
    EXPECT_FALSE(none.matches(frame.data()));
    for (const auto byte : {std::byte{0}, std::byte{0xff}})
      EXPECT_FALSE(none.matches(Buffer(ExpectedData::kHead, byte).data()));
  }
}

// Changes a few bytes of a good frame: if it still matches, it must be good.
TEST(ExpectedData, WhatMatchesIsParsedAlike) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  unsigned matched = 0;
  for (unsigned round = 0; round < 50'000 && !testing::Test::HasFailure(); ++round) {
    auto frame = ethernet2(data_header(), pattern(6 + below(100)));
    for (auto changes = below(4); changes > 0; --changes) {
      auto& byte = frame[below(ExpectedData::kHead)];
      byte = below(2) == 0 ? byte ^ (std::byte{1} << below(8)) : static_cast<std::byte>(random());
    }
    if (below(20) == 0) frame.resize(below(frame.size()));
    if (!matches(frame)) continue;
    ++matched;
    expect_parsed_alike(frame);
  }
  EXPECT_GT(matched, 10'000U);
}

// What may lie where its sender can still change it: nothing behind the head may decide anything.
TEST(ExpectedData, OnlyDataWithoutCksumAndAppendIsPlain) {
  const auto stu = pattern(64);
  const auto good = ethernet2(data_header(), stu);
  EXPECT_TRUE(is_plain_data(good.data()));
  EXPECT_FALSE(is_plain_data(ethernet2(data_header(flag::kAppend), stu).data()));
  auto nop = good_header(Op::kNoOperation, 0);
  nop.cksum = 0;
  EXPECT_FALSE(is_plain_data(ethernet2(nop, stu).data()));
  auto other = good;
  other[kEthernetSize - 2] ^= std::byte{1};
  EXPECT_FALSE(is_plain_data(other.data())) << "a tag, a length, or another protocol";
  auto summed = good;
  summed[kEthernetSize + at::kCksum + 1] = std::byte{1};
  EXPECT_FALSE(is_plain_data(summed.data()));
}

}  // namespace
}  // namespace stp::wire
