// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/mapped_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <vector>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

class MappedMemoryTest : public ::testing::Test {
 protected:
  static constexpr unsigned kBufsize = 12;
  Mechanisms with;
  Buffers buffers{kBufsize, 2};
  RegionId region = kNoneId;
  std::uint16_t mx = 0;

  void SetUp() override {
    auto& endpoint = with.vcs.endpoint;
    endpoint.config.bufsize = kBufsize;
    endpoint.receive = BufxRange(0, 16, kBufsize);
    const auto all = buffers.all();
    ASSERT_EQ(with.memory.map(endpoint, Direction::kReceive, 4, {&all, 1}, region), 0);
  }
  DropReason check(const Vc& vc, std::uint32_t bufx, std::byte*& memory) {
    wire::Header named;
    named.mx = mx;
    named.bufx = bufx;
    named.offset = 8;
    return with.memory.check(vc.reach(), named, 16, permit::kData, memory);
  }
};

// protocol: 7.3, 7.6
TEST_F(MappedMemoryTest, an_mx_names_memory_for_its_connection_until_that_ends) {
  auto &vc = with.open(1), &other = with.open(2);
  ASSERT_EQ(with.memory.alloc_mx(region, vc.id, permit::kData, mx), 0);
  std::byte* memory = nullptr;
  EXPECT_EQ(check(vc, 5, memory), DropReason::kNone);
  EXPECT_EQ(memory, buffers.data() + (1U << kBufsize) + 8);
  EXPECT_EQ(check(vc, 6, memory), DropReason::kBadBufx);
  EXPECT_EQ(check(other, 5, memory), DropReason::kMxNotOwned);
  with.memory.abandon(vc.mxs);
  const auto gone = with.vcs.table.take(vc);
  EXPECT_EQ(check(other, 5, memory), DropReason::kBadMx);
}

// protocol: 7.5
TEST_F(MappedMemoryTest, who_unmaps_is_told_when_no_frame_reads_the_memory) {
  auto& vc = with.open(1);
  ASSERT_EQ(with.memory.alloc_mx(region, kNoneId, permit::kData, mx), 0);
  with.memory.attach(region);
  with.memory.attach(region);
  ASSERT_EQ(with.memory.unmap(region), 0);
  EXPECT_EQ(with.memory.unmap(region), -EBADF);
  std::byte* memory = nullptr;
  EXPECT_NE(check(vc, 5, memory), DropReason::kNone);
  EXPECT_TRUE(with.memory.detach(region));
  EXPECT_EQ(with.events(Event::Kind::kRegionGone), 0U);
  EXPECT_TRUE(with.memory.detach(region));
  EXPECT_EQ(with.events(Event::Kind::kRegionGone), 1U);
  EXPECT_EQ(with.vcs.endpoint.regions, 0U);
  EXPECT_FALSE(with.memory.detach(region)) << "given back twice";
}

TEST_F(MappedMemoryTest, an_mx_is_made_only_for_what_fits_together) {
  EXPECT_EQ(with.memory.alloc_mx(region + 1, kNoneId, permit::kData, mx), -EBADF);
  EXPECT_EQ(with.memory.alloc_mx(region, 12'345, permit::kData, mx), -EBADF);
  Endpoint another;
  auto& vc = with.open(1);
  vc.endpoint = &another;
  EXPECT_EQ(with.memory.alloc_mx(region, vc.id, permit::kData, mx), -EINVAL);
  vc.endpoint = &with.vcs.endpoint;
  ASSERT_EQ(with.memory.alloc_mx(region, vc.id, permit::kData, mx), 0);
  EXPECT_EQ(with.memory.free_mx(with.vcs.endpoint.id + 1, mx), -ERANGE);
  EXPECT_EQ(with.memory.free_mx(with.vcs.endpoint.id, mx), 0);
  EXPECT_EQ(with.memory.free_mx(with.vcs.endpoint.id, mx), -ERANGE);
}

// The table of bound memory: correct at the edges of its pages, and no larger than needed.

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

constexpr MxEntry kEntry{
    .region = 5, .first = 100, .count = 10, .endpoint = 1, .vc = 2, .permissions = 3};

class MxTableTest : public ::testing::Test {
 protected:
  MxTable table;
  RegionMxs region;
  VcMxs vc;

  int allocate(const MxEntry& entry = kEntry) { return table.allocate(entry, region, &vc); }
  std::uint16_t one() { return static_cast<std::uint16_t>(allocate()); }
};

// protocol: 7.3
TEST_F(MxTableTest, a_name_finds_what_it_was_given_for_until_it_is_freed) {
  EXPECT_EQ(table.find(0), nullptr);  // a header of zeros names nothing
  const auto mx = one();
  ASSERT_NE(mx, 0);
  ASSERT_NE(table.find(mx), nullptr);
  EXPECT_EQ(table.find(mx)->region, kEntry.region);
  EXPECT_EQ(table.find(mx)->permissions, kEntry.permissions);
  EXPECT_EQ(table.find(static_cast<std::uint16_t>(mx + 1)), nullptr);
  EXPECT_EQ(table.find(0xffff), nullptr);
  EXPECT_EQ(region.front().mx, mx);
  EXPECT_EQ(vc.front().mx, mx);
  table.free(mx);
  EXPECT_EQ(table.find(mx), nullptr);
  EXPECT_TRUE(region.empty());
  EXPECT_TRUE(vc.empty());
}

TEST(MxEntry, contains_its_own_buffers_only) {
  EXPECT_FALSE(kEntry.contains(99));
  EXPECT_TRUE(kEntry.contains(100));
  EXPECT_TRUE(kEntry.contains(109));
  EXPECT_FALSE(kEntry.contains(110));
  EXPECT_FALSE(kEntry.contains(0));
  EXPECT_FALSE(kEntry.contains(0xffffffff));
  // The last buffers there are.
  const MxEntry last{.first = 0xfffffff0, .count = 16};
  EXPECT_TRUE(last.contains(0xffffffff));
  EXPECT_FALSE(last.contains(0));
}

// protocol: 7.4
TEST_F(MxTableTest, a_freed_name_rests_before_it_is_given_out_again) {
  const auto first = one();
  table.free(first);
  for (int i = 0; i < 1'000; ++i) {
    const auto mx = one();
    ASSERT_NE(mx, first) << i;
    table.free(mx);
  }
  bool again = false;
  for (int i = 0; i < 100 && !again; ++i) {
    const auto mx = one();
    again = mx == first;
    table.free(mx);
  }
  EXPECT_TRUE(again) << "names are not used up";
}

TEST_F(MxTableTest, there_are_65535_names_and_each_is_one_users) {
  std::set<int> names;
  for (std::size_t i = 0; i < MxTable::kMost; ++i) names.insert(allocate());
  EXPECT_EQ(names.size(), MxTable::kMost);
  EXPECT_EQ(*names.begin(), 1);
  EXPECT_EQ(*names.rbegin(), 0xffff);
  EXPECT_EQ(allocate(), -ENOSPC);
  table.free(77);  // where there is no other, none rests
  EXPECT_EQ(allocate(), 77);
  EXPECT_EQ(allocate(), -ENOSPC);
}

TEST_F(MxTableTest, what_was_abandoned_is_freed_in_slices) {
  VcMxs other;
  for (int i = 0; i < 10; ++i) allocate();
  const auto kept = static_cast<std::uint16_t>(table.allocate(kEntry, region, &other));
  ASSERT_FALSE(table.untidy());
  table.abandon(vc);
  EXPECT_TRUE(vc.empty());
  EXPECT_TRUE(table.untidy());
  EXPECT_EQ(table.tidy(4), 4U);
  EXPECT_TRUE(table.untidy());
  EXPECT_EQ(table.tidy(100), 6U);
  EXPECT_FALSE(table.untidy());
  EXPECT_EQ(table.tidy(100), 0U);
  for (std::uint16_t mx = 1; mx <= 10; ++mx) EXPECT_EQ(table.find(mx), nullptr);
  ASSERT_NE(table.find(kept), nullptr) << "another connection's";
  table.abandon(region);
  EXPECT_EQ(table.tidy(100), 1U);
  EXPECT_EQ(table.find(kept), nullptr);
  EXPECT_TRUE(other.empty());
}

TEST_F(MxTableTest, where_names_run_out_an_abandoned_one_serves_at_once) {
  VcMxs other;
  const auto mx = table.allocate(kEntry, region, &other);
  for (std::size_t i = 1; i < MxTable::kMost; ++i) allocate();
  ASSERT_EQ(allocate(), -ENOSPC);
  table.abandon(other);
  EXPECT_EQ(allocate(), mx);
  EXPECT_FALSE(table.untidy());
}

}  // namespace
}  // namespace stp::test
