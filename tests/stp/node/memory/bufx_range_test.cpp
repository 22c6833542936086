// SPDX-License-Identifier: BSD-3-Clause
// The table of bound memory: correct at the edges of its pages, and no larger than needed.
#include "stp/node/memory/bufx_range.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace stp::test {
namespace {

constexpr unsigned kBufsize = 8;
constexpr std::size_t kBuffer = std::size_t{1} << kBufsize;
constexpr std::uint32_t kBase = 1000;
constexpr auto kPage = static_cast<std::uint32_t>(BufxRange::kPageEntries);

class Range : public ::testing::Test {
 protected:
  std::vector<std::byte> memory = std::vector<std::byte>(4 * kPage * kBuffer);
  BufxRange range{kBase, 0xffff'0000, kBufsize};

  MutableBytes buffers(std::size_t from, std::size_t count) {
    return MutableBytes(memory).subspan(from * kBuffer, count * kBuffer);
  }
  int bind(std::uint32_t first, std::vector<MutableBytes> pieces, RegionId region) {
    return range.bind(first, pieces, region);
  }
  void expect_bound(std::uint32_t first, MutableBytes piece, RegionId region) {
    for (std::size_t i = 0; i < piece.size() / kBuffer; ++i) {
      const auto entry = range.find(first + static_cast<std::uint32_t>(i));
      ASSERT_EQ(entry.memory, piece.data() + i * kBuffer) << i;
      ASSERT_EQ(entry.region, region);
    }
  }
};

// A table with all entries up to the highest one would take 256 MiB.
TEST_F(Range, one_buffer_at_the_highest_bufx_costs_one_entry) {
  const auto high = kBase + static_cast<std::uint32_t>(BufxRange::kMaxReach) - 1;
  const auto piece = buffers(0, 1);
  const auto growth = range.growth(high, {&piece, 1});
  ASSERT_EQ(bind(high, {piece}, 7), 0);
  expect_bound(high, piece, 7);
  EXPECT_LE(range.footprint(), growth);
  EXPECT_LE(range.footprint(), 256U);
  EXPECT_EQ(bind(high + 1, {piece}, 8), -ENOMEM);
  // Binds one at the other end: the table has places for the pages between, but no entries.
  const auto more = range.growth(kBase, {&piece, 1});
  const auto before = range.footprint();
  ASSERT_EQ(bind(kBase, {piece}, 8), 0);
  EXPECT_LE(range.footprint(), before + more);
  EXPECT_LE(range.footprint(), std::size_t{1} << 19);
  EXPECT_EQ(range.unbind(high, 1, 7) + range.unbind(kBase, 1, 8), 2U);
  EXPECT_EQ(range.footprint(), 0U);
}

TEST_F(Range, memory_that_fills_pages_is_found_at_each_entry) {
  const auto first = kBase + kPage - 3;
  const auto piece = buffers(0, 2 * kPage + 5);
  const auto growth = range.growth(first, {&piece, 1});
  ASSERT_EQ(bind(first, {piece}, 7), 0);
  expect_bound(first, piece, 7);
  EXPECT_EQ(range.find(first - 1).memory, nullptr);
  EXPECT_EQ(range.find(first + 2 * kPage + 5).memory, nullptr);
  EXPECT_LE(range.footprint(), growth);
  EXPECT_TRUE(range.covers(first, 0, piece.size()));
  EXPECT_FALSE(range.covers(first, 0, piece.size() + 1));
  EXPECT_FALSE(range.covers(first, 1, piece.size()));
  RegionId region = 0;
  const auto run = range.run(std::uint64_t{first} << kBufsize, piece.size(), region);
  EXPECT_EQ(run.size(), piece.size());
  // Nothing that overlaps it can be bound.
  for (const auto at : {first - 1, first + 5, first + kPage, first + 2 * kPage + 4})
    EXPECT_EQ(bind(at, {buffers(0, 2)}, 8), -EBUSY) << at;
  EXPECT_EQ(bind(first - 1, {buffers(0, 3 * kPage)}, 8), -EBUSY);
  EXPECT_EQ(range.bound(), 2U * kPage + 5);
  EXPECT_EQ(range.unbind(first, 2 * kPage + 5, 7), 2U * kPage + 5);
  EXPECT_EQ(range.find(first + kPage).memory, nullptr);
  EXPECT_EQ(range.footprint(), 0U);
}

TEST_F(Range, pieces_may_meet_anywhere_in_a_page) {
  const auto a = buffers(kPage, 3), b = buffers(2 * kPage, kPage), c = buffers(0, kPage - 3);
  ASSERT_EQ(bind(kBase, {a, b, c}, 7), 0);
  expect_bound(kBase, a, 7);
  expect_bound(kBase + 3, b, 7);
  expect_bound(kBase + 3 + kPage, c, 7);
  EXPECT_TRUE(range.covers(kBase, 0, 2 * kPage * kBuffer));
  RegionId region = 0;
  EXPECT_EQ(range.run(std::uint64_t{kBase} << kBufsize, 1 << 20, region).size(), 3 * kBuffer);
  EXPECT_EQ(range.unbind(kBase, 2 * kPage, 7), 2U * kPage);
  EXPECT_EQ(range.bound(), 0U);
}

TEST_F(Range, what_another_region_has_in_a_page_stays) {
  ASSERT_EQ(bind(kBase + 10, {buffers(0, 10)}, 7), 0);
  ASSERT_EQ(bind(kBase + 25, {buffers(20, 5)}, 8), 0);
  ASSERT_EQ(bind(kBase, {buffers(40, 10)}, 9), 0);
  EXPECT_FALSE(range.covers(kBase + 10, 0, 15 * kBuffer)) << "there is a gap";
  EXPECT_EQ(range.unbind(kBase + 10, 10, 8), 0U) << "that is not this one's";
  EXPECT_EQ(range.unbind(kBase + 10, 10, 7), 10U);
  expect_bound(kBase + 25, buffers(20, 5), 8);
  expect_bound(kBase, buffers(40, 10), 9);
  EXPECT_EQ(range.find(kBase + 10).memory, nullptr);
  ASSERT_EQ(bind(kBase + 10, {buffers(0, 15)}, 10), 0);
  EXPECT_EQ(range.bound(), 30U);
}

// A lookup tries the piece that was found last first. It must still be bound.
TEST_F(Range, what_was_found_last_is_not_found_once_it_is_unbound) {
  ASSERT_EQ(bind(kBase, {buffers(0, 4)}, 7), 0);
  expect_bound(kBase, buffers(0, 4), 7);
  EXPECT_EQ(range.unbind(kBase, 4, 7), 4U);
  EXPECT_EQ(range.find(kBase + 1).memory, nullptr);
  EXPECT_FALSE(range.covers(kBase + 1, 0, 1));
  RegionId region = 0;
  EXPECT_TRUE(range.run(std::uint64_t{kBase + 1} << kBufsize, 1, region).empty());
  ASSERT_EQ(bind(kBase, {buffers(8, 2)}, 8), 0);
  expect_bound(kBase, buffers(8, 2), 8);
  EXPECT_EQ(range.find(kBase + 2).memory, nullptr);
}

TEST_F(Range, pieces_are_found_in_turn_and_a_run_ends_with_its_region) {
  const auto a = buffers(0, 3), b = buffers(3, 3);
  ASSERT_EQ(bind(kBase, {a}, 7), 0);
  ASSERT_EQ(bind(kBase + 3, {b}, 8), 0);
  for (int turn = 0; turn < 2; ++turn) {
    expect_bound(kBase, a, 7);
    expect_bound(kBase + 3, b, 8);
  }
  RegionId region = 0;
  EXPECT_EQ(range.run(std::uint64_t{kBase} << kBufsize, 1 << 20, region).size(), 3 * kBuffer);
  EXPECT_EQ(region, 7U);
  EXPECT_TRUE(range.covers(kBase, 0, 6 * kBuffer));
  EXPECT_FALSE(range.covers(kBase, 1, 6 * kBuffer));
  EXPECT_EQ(range.find(kBase - 1).memory, nullptr);
  EXPECT_EQ(range.find(kBase + 6).memory, nullptr);
}

TEST_F(Range, memory_that_goes_on_in_the_next_piece_is_one_run) {
  ASSERT_EQ(bind(kBase, {buffers(0, 3), buffers(3, kPage), buffers(2 * kPage, 1)}, 7), 0);
  RegionId region = 0;
  EXPECT_EQ(range.run(std::uint64_t{kBase} << kBufsize, std::uint64_t{1} << 30, region).size(),
            (kPage + 3) * kBuffer);
  EXPECT_TRUE(range.covers(kBase, 0, (kPage + 4) * kBuffer));
  EXPECT_EQ(range.unbind(kBase, kPage + 4, 7), kPage + 4U);
  EXPECT_EQ(range.footprint(), 0U);
}

TEST_F(Range, a_piece_goes_as_a_whole) {
  ASSERT_EQ(bind(kBase, {buffers(0, 4)}, 7), 0);
  EXPECT_EQ(range.unbind(kBase, 3, 7), 0U);
  EXPECT_EQ(range.unbind(kBase + 1, 3, 7), 0U);
  expect_bound(kBase, buffers(0, 4), 7);
  EXPECT_EQ(range.bound(), 4U);
}

TEST_F(Range, what_does_not_fit_binds_nothing) {
  const auto one = buffers(0, 1);
  EXPECT_EQ(bind(kBase - 1, {one}, 7), -ERANGE);
  EXPECT_EQ(bind(kBase, {}, 7), -EINVAL);
  EXPECT_EQ(bind(kBase, {one.first(3)}, 7), -EINVAL);
  EXPECT_EQ(bind(kBase, std::vector<MutableBytes>(BufxRange::kMaxPieces + 1, one), 7), -EINVAL);
  EXPECT_EQ(range.bound(), 0U);
  EXPECT_EQ(range.footprint(), 0U);
}

}  // namespace
}  // namespace stp::test
