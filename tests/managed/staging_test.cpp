// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/staging.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

class Stagings : public OnScriptedLink {
 protected:
  ~Stagings() override {
    const Lock control(domain->control_mutex());
    area.unbind();
  }
  int grow() {
    const Lock control(domain->control_mutex());
    return area.grow(domain);
  }
  // The free blocks, and rings; all are taken.
  std::vector<Staging> take_all() {
    std::vector<Staging> all;
    while (area.has_free()) all.push_back(area.take());
    return all;
  }
  std::vector<RingMemory> take_rings() {
    std::vector<RingMemory> all;
    while (const auto ring = area.take_ring()) all.push_back(*ring);
    return all;
  }
  std::size_t take_pages() {
    std::size_t count = 0;
    for (; area.pages().has(1); ++count) static_cast<void>(area.pages().take(1));
    return count;
  }

  StagingArea area;
};

TEST(StagingBlocks, HaveAPlaceForEachHelloAndEachCellAndASmallRing) {
  std::vector<std::byte> block(kStagingBlock);
  const Staging staging{block.data(), nullptr};
  const auto* end = block.data();
  for (std::uint32_t slot = 0; slot < kEagerSlots; ++slot, end += kEagerCell)
    EXPECT_EQ(staging.cell_out(slot), end);
  EXPECT_EQ(staging.hello_out(), block.data()) << "before the first message";
  EXPECT_EQ(staging.hello_in(), block.data() + kHelloSize);
  EXPECT_EQ(staging.hello_in() + kHelloSize, end);
  EXPECT_EQ(staging.small_ring(), end);
  EXPECT_EQ(staging.small_ring() + kSmallRing, block.data() + kStagingBlock);
}

TEST_F(Stagings, WhatIsTakenIsApartAndInItsMemory) {
  endpoint();
  std::vector<std::pair<std::byte*, std::size_t>> parts;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(grow(), 0);
    for (const auto& block : take_all()) {
      EXPECT_TRUE(block.memory->contains(block.base, kStagingBlock));
      parts.emplace_back(block.base, kStagingBlock);
    }
    for (const auto& ring : take_rings()) {
      EXPECT_TRUE(ring.memory->contains(ring.base, kEagerRing));
      parts.emplace_back(ring.base, kEagerRing);
    }
    while (area.pages().has(5))
      parts.emplace_back(area.pages().at(area.pages().take(5)), 5 * kEagerSlot);
    area.pages().want();
  }
  std::sort(parts.begin(), parts.end());
  for (std::size_t i = 1; i < parts.size(); ++i)
    EXPECT_GE(parts[i].first, parts[i - 1].first + parts[i - 1].second);
  for (const auto& [at, size] : parts) std::fill_n(at, size, std::byte{1});
}

TEST_F(Stagings, GrowByAsManyAsThereAreUpToABound) {
  endpoint();
  std::vector<std::size_t> blocks, rings, pages;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(grow(), 0);
    blocks.push_back(take_all().size());
    rings.push_back(take_rings().size());
    pages.push_back(take_pages() / SendPages::kBlock);
  }
  EXPECT_EQ(blocks, (std::vector<std::size_t>{8, 8, 16, 32, 64, 128, 256, 256}));
  EXPECT_EQ(rings, (std::vector<std::size_t>{8, 8, 16, 32, 64, 64, 64, 64}));
  EXPECT_EQ(pages, (std::vector<std::size_t>{4, 4, 8, 16, 32, 64, 64, 64}));
}

// A connection that neither sends nor receives longer messages takes no memory for them.
TEST_F(Stagings, GrowOnlyByWhatIsWanted) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  EXPECT_FALSE(area.is_wanted());
  const auto maps = link->count(Kind::kMap);
  ASSERT_EQ(grow(), 0);
  EXPECT_EQ(link->count(Kind::kMap), maps) << "nothing is";
  take_all();
  ASSERT_EQ(grow(), 0);
  EXPECT_EQ(take_all().size(), 8U);
  EXPECT_EQ(take_rings().size(), 8U);
  EXPECT_TRUE(area.is_wanted()) << "one more ring was asked for";
  EXPECT_EQ(take_pages(), 4 * SendPages::kBlock);
}

// Else whoever provides it would do so again and again.
TEST_F(Stagings, WhatIsThereAgainIsWantedNoMore) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  const auto blocks = take_all();
  const auto rings = take_rings();
  area.want_block();
  EXPECT_TRUE(area.is_wanted());
  area.give_back(blocks[0]);
  area.give_back(rings[0]);
  const auto maps = link->count(Kind::kMap);
  ASSERT_EQ(grow(), 0);
  EXPECT_EQ(link->count(Kind::kMap), maps);
  EXPECT_FALSE(area.is_wanted());
}

// However many peers use their small rings.
TEST_F(Stagings, OnlySoManyConnectionsWithSmallRingsGetOthers) {
  endpoint();
  std::vector<RingMemory> rings;
  while (area.has_few_rings()) {
    if (const auto ring = area.take_ring())
      rings.push_back(*ring);
    else
      ASSERT_EQ(grow(), 0);
  }
  EXPECT_EQ(rings.size(), 64U);
  area.give_back(rings.back());
  EXPECT_TRUE(area.has_few_rings()) << "one has ended";
}

TEST_F(Stagings, MorePagesAreWantedBeforeThereIsNone) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  while (!area.is_wanted()) {
    ASSERT_TRUE(area.pages().has(1));
    static_cast<void>(area.pages().take(1));
  }
  EXPECT_TRUE(area.pages().has(1));
}

TEST_F(Stagings, WhatComesBackIsTakenAgain) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  const auto blocks = take_all();
  EXPECT_FALSE(area.has_free());
  area.give_back(blocks[3]);
  ASSERT_TRUE(area.has_free());
  EXPECT_EQ(area.take().base, blocks[3].base);
  EXPECT_FALSE(area.has_free());
  const auto rings = take_rings();
  area.give_back(rings[3]);
  EXPECT_EQ(area.take_ring()->base, rings[3].base);
}

TEST_F(Stagings, WhatComesBackHoldsNoPages) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  const auto is = [](const std::byte* at, std::size_t size, int value) {
    return std::count(at, at + size, std::byte(value)) == static_cast<std::ptrdiff_t>(size);
  };
  const auto block = area.take(), other = area.take();
  const auto ring = *area.take_ring(), other_ring = *area.take_ring();
  for (const auto& each : {block, other}) std::fill_n(each.base, kStagingBlock, std::byte{1});
  for (const auto& each : {ring, other_ring}) std::fill_n(each.base, kEagerRing, std::byte{1});
  area.give_back(block);
  area.give_back(ring);
  EXPECT_TRUE(is(block.base, kStagingBlock, 0));
  EXPECT_TRUE(is(other.base, kStagingBlock, 1));
  EXPECT_TRUE(is(ring.base, kEagerRing, 0));
  EXPECT_TRUE(is(other_ring.base, kEagerRing, 1));
}

TEST_F(Stagings, WhatTheLinkRefusesChangesNothing) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  const auto before = take_all();
  take_rings();
  take_pages();
  area.pages().want();
  link->refuse = [](const auto&) { return -ENOSPC; };
  EXPECT_EQ(grow(), -ENOSPC);
  EXPECT_FALSE(area.has_free());
  EXPECT_TRUE(area.refuses_rings());
  EXPECT_TRUE(area.pages().is_refused());
  EXPECT_EQ(area.take_ring(), std::nullopt);
  EXPECT_FALSE(area.is_wanted()) << "it would be refused again";
  area.give_back(before[0]);
  EXPECT_FALSE(area.refuses_rings()) << "a connection has ended, so there may be memory";
  EXPECT_FALSE(area.pages().is_refused());
  static_cast<void>(area.take());
  link->refuse = {};
  ASSERT_EQ(grow(), 0);
  EXPECT_EQ(take_all().size(), before.size());
}

TEST_F(Stagings, AtTheEndAllIsUnmapped) {
  endpoint();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(grow(), 0);
    take_all();
  }
  const auto place = area.pages().take(2);
  {
    const Lock control(domain->control_mutex());
    area.unbind();
  }
  EXPECT_FALSE(area.has_free());
  EXPECT_EQ(area.take_ring(), std::nullopt);
  EXPECT_FALSE(area.pages().has(1));
  area.pages().give_back(place);  // of a connection that the program still holds
  EXPECT_FALSE(area.pages().has(1));
  EXPECT_EQ(link->count(Kind::kUnmap), link->count(Kind::kMap));
}

// Pages that nobody can tell apart from those of a link.
class PagesToSendFrom : public testing::Test {
 protected:
  static constexpr std::size_t kBlocks = SendPages::kKept + 2;
  PagesToSendFrom() {
    base = static_cast<std::byte*>(::mmap(nullptr, kBlocks * kEagerRing, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    pages.add(base, nullptr, kBlocks, true);
  }
  ~PagesToSendFrom() override { ::munmap(base, kBlocks * kEagerRing); }

  std::byte* base;
  SendPages pages;
};

TEST_F(PagesToSendFrom, OfAMessageLieBehindEachOtherAndAreTheFirstThatAreFree) {
  const auto three = pages.take(3), five = pages.take(5);
  EXPECT_EQ(pages.at(three), base);
  EXPECT_EQ(pages.at(five), base + 3 * kEagerSlot);
  EXPECT_EQ(pages.at(pages.take(8)), base + 8 * kEagerSlot);
  EXPECT_EQ(pages.at(pages.take(1)), base + kEagerRing) << "the first block is full";
  pages.give_back(three);
  EXPECT_EQ(pages.at(pages.take(4)), base + kEagerRing + kEagerSlot) << "there are only three";
  EXPECT_EQ(pages.at(pages.take(2)), base);
  EXPECT_EQ(pages.at(pages.take(1)), base + 2 * kEagerSlot);
}

TEST_F(PagesToSendFrom, BeyondThoseThatAreKeptGoBackWithTheirBlock) {
  for (std::size_t i = 0; i < SendPages::kKept; ++i) static_cast<void>(pages.take(16));
  const auto one = pages.take(1), other = pages.take(1);
  *pages.at(one) = *pages.at(other) = std::byte{1};
  pages.give_back(one);
  EXPECT_EQ(*pages.at(one), std::byte{1});
  pages.give_back(other);
  EXPECT_EQ(*pages.at(one), std::byte{0});
  EXPECT_EQ(*pages.at(other), std::byte{0});
}

}  // namespace
}  // namespace stp::managed
