// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/tiling.h"

#include <gtest/gtest.h>

#include <vector>

namespace stp {
namespace {

constexpr unsigned kNoSenderLimit = 16;

struct Stu {
  std::uint32_t bufx, offset;
  std::uint64_t length;
  friend bool operator==(const Stu&, const Stu&) = default;
};

struct Golden {
  unsigned bufsize, max_stu;
  std::uint32_t bufx, offset;
  std::uint64_t length;
  std::vector<Stu> stus;
};

std::vector<Stu> tile(const Golden& g) {
  const auto s = stu_size_log2(g.max_stu, kNoSenderLimit, g.bufsize);
  auto at = Address{g.bufx, g.offset}.linear(g.bufsize);
  std::vector<Stu> out;
  for (auto remaining = g.length;;) {
    const auto length = stu_length(at, remaining, s);
    const auto to = Address::from_linear(at, g.bufsize);
    out.push_back({to.bufx, to.offset, length});
    at += length;
    remaining -= length;
    if (remaining == 0) return out;
  }
}

// protocol: 8.2, 8.4
TEST(Tiling, golden_blocks_are_cut_as_every_implementation_must) {
  const std::vector<Golden> golden{
      {14,
       13,
       0,
       0,
       40000,
       {{0, 0, 8192}, {0, 8192, 8192}, {1, 0, 8192}, {1, 8192, 8192}, {2, 0, 7232}}},
      {12,
       10,
       5,
       1000,
       5000,
       {{5, 1000, 24},
        {5, 1024, 1024},
        {5, 2048, 1024},
        {5, 3072, 1024},
        {6, 0, 1024},
        {6, 1024, 880}}},
      {14, 16, 7, 16383, 2, {{7, 16383, 1}, {8, 0, 1}}},
      {8, 10, 1, 255, 600, {{1, 255, 1}, {2, 0, 256}, {3, 0, 256}, {4, 0, 87}}},
      {14, 13, 3, 100, 0, {{3, 100, 0}}},
      {12, 12, 9, 4095, 1, {{9, 4095, 1}}},
  };
  for (const auto& g : golden) {
    EXPECT_EQ(tile(g), g.stus) << "bufsize " << g.bufsize << " length " << g.length;
    const auto s = stu_size_log2(g.max_stu, kNoSenderLimit, g.bufsize);
    EXPECT_EQ(stu_count(Address{g.bufx, g.offset}.linear(g.bufsize), g.length, s), g.stus.size());
  }
}

// protocol: 8.1
TEST(Tiling, stu_size_is_the_smallest_of_what_both_ends_allow) {
  EXPECT_EQ(stu_size_log2(13, 10, 14), 10U);
  EXPECT_EQ(stu_size_log2(10, 13, 14), 10U);
  EXPECT_EQ(stu_size_log2(13, 13, 8), 8U);
}

}  // namespace
}  // namespace stp
