// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/keyed_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace stp::test {
namespace {

struct Given : Random {
  std::vector<std::uint32_t> words;
  std::size_t at = 0;
  std::uint32_t next() override { return words[at++]; }
};

// The vectors of the authors of SipHash: key 00..0f, messages 00, 00 01 and so on. Those of whole
// words of 64 bits.
TEST(KeyedHash, is_siphash_2_4) {
  Given random;
  random.words = {0x07060504, 0x03020100, 0x0f0e0d0c, 0x0b0a0908};
  KeyedHash hash;
  hash.draw(random);
  EXPECT_EQ(hash(std::array<std::uint64_t, 0>{}), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(hash(std::array<std::uint64_t, 1>{0x0706050403020100}), 0x93f5f5799a932462U);
  EXPECT_EQ(hash(std::array<std::uint64_t, 2>{0x0706050403020100, 0x0f0e0d0c0b0a0908}),
            0x3f2acc7f57c29bdbU);
}

TEST(KeyedHash, another_secret_makes_another_hash) {
  Given random;
  random.words = {1, 2, 3, 4, 1, 2, 3, 5};
  KeyedHash a, b;
  a.draw(random);
  b.draw(random);
  EXPECT_NE(a(std::array<std::uint64_t, 1>{7}), b(std::array<std::uint64_t, 1>{7}));
}

}  // namespace
}  // namespace stp::test
