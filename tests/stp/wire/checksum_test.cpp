// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/checksum.h"

#include <gtest/gtest.h>

#include "tests/stp/wire/frames.h"

namespace stp::wire {
namespace {

// RFC 1071, implemented literally: 16-bit words, end-around carry, an odd byte padded with zero.
std::uint16_t plain_checksum(Bytes bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  const std::uint32_t value = ~sum & 0xffff;
  return static_cast<std::uint16_t>(value == 0 ? 0xffff : value);
}

std::uint16_t value_of(Bytes bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.wire_value();
}

// protocol: 4.1
TEST(Checksum, IsTheOneOfTheRfcsExample) {
  EXPECT_EQ(value_of(bytes("0001 f203 f4f5 f6f7")), 0x220d);  // ~0xddf2
}

TEST(Checksum, AgreesWithThePlainSumAtEveryLengthAndAlignment) {
  const Buffer data = pattern(300);
  for (std::size_t start = 0; start < 8; ++start) {
    for (std::size_t length = 0; start + length <= data.size(); ++length) {
      const Bytes run = Bytes{data}.subspan(start, length);
      ASSERT_EQ(value_of(run), plain_checksum(run)) << start << "+" << length;
    }
  }
}

TEST(Checksum, PiecesOfOddLengthSumAsIfTheyStoodInOneRun) {
  const Buffer data = pattern(67);
  const Bytes whole = data;
  for (std::size_t first = 0; first <= whole.size(); ++first) {
    for (std::size_t second = first; second <= whole.size(); ++second) {
      Checksum checksum;
      checksum.add(whole.first(first));
      checksum.add(whole.subspan(first, second - first));
      checksum.add(whole.subspan(second));
      ASSERT_EQ(checksum.wire_value(), plain_checksum(whole)) << first << ", " << second;
    }
  }
}

TEST(Checksum, LosesNoCarryOfALongRunOfOnes) {
  const Buffer ones(9001, std::byte{0xff});
  EXPECT_EQ(value_of(ones), plain_checksum(ones));
}

// protocol: 4.2
TEST(Checksum, ASumOfZeroIsSentAsAllOnes) {
  EXPECT_EQ(value_of(bytes("ffff")), 0xffff);
  EXPECT_EQ(value_of(bytes("1234 edcb")), 0xffff);
}

TEST(Checksum, VerifiesWhatItMade) {
  Buffer data = pattern(64);
  data[12] = data[13] = std::byte{0};
  const std::uint16_t value = value_of(data);
  data[12] = static_cast<std::byte>(value >> 8);
  data[13] = static_cast<std::byte>(value & 0xff);
  Checksum right;
  right.add(data);
  EXPECT_TRUE(right.verified());
  data[40] ^= std::byte{0x10};
  Checksum wrong;
  wrong.add(data);
  EXPECT_FALSE(wrong.verified());
}

}  // namespace
}  // namespace stp::wire
