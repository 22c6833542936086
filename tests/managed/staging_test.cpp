// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/staging.h"

#include <algorithm>
#include <set>

#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

class Stagings : public OnScriptedLink {
 protected:
  ~Stagings() override {
    const std::lock_guard control(domain->control_mutex());
    area.unbind();
  }
  int grow() {
    const std::lock_guard control(domain->control_mutex());
    return area.grow(domain);
  }
  // The free blocks; all are taken.
  std::vector<Staging> take_all() {
    std::vector<Staging> all;
    while (area.has_free()) all.push_back(area.take());
    return all;
  }

  StagingArea area;
};

TEST(StagingBlocks, HaveAPlaceForEachHelloAndEachSlotOfBothRings) {
  std::vector<std::byte> block(kStagingBlock);
  const Staging staging{block.data(), nullptr};
  std::vector<std::pair<std::byte*, std::size_t>> parts{{staging.hello_out(), kHelloSize},
                                                        {staging.hello_in(), kHelloSize}};
  for (std::uint32_t slot = 0; slot < kEagerSlots; ++slot) {
    parts.emplace_back(staging.eager_out(slot), kEagerSlot);
    parts.emplace_back(staging.eager_in(slot), kEagerSlot);
  }
  std::sort(parts.begin(), parts.end());
  const auto* end = block.data();
  for (const auto& [at, size] : parts) {
    EXPECT_EQ(at, end);
    end = at + size;
  }
  EXPECT_EQ(end, block.data() + kStagingBlock);
}

TEST_F(Stagings, BlocksAreApartAndInTheirMemory) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  ASSERT_EQ(grow(), 0);
  auto blocks = take_all();
  for (const auto& block : blocks) EXPECT_TRUE(block.memory->contains(block.base, kStagingBlock));
  std::sort(blocks.begin(), blocks.end(),
            [](const auto& one, const auto& other) { return one.base < other.base; });
  for (std::size_t i = 1; i < blocks.size(); ++i)
    EXPECT_GE(blocks[i].base, blocks[i - 1].base + kStagingBlock);
  for (const auto& block : blocks) std::fill_n(block.base, kStagingBlock, std::byte{1});
}

TEST_F(Stagings, GrowByAsManyAsThereAreUpToABound) {
  endpoint();
  std::vector<std::size_t> grown;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(grow(), 0);
    grown.push_back(take_all().size());
  }
  EXPECT_EQ(grown, (std::vector<std::size_t>{8, 8, 16, 32, 64, 128, 256, 256}));
}

TEST_F(Stagings, ABlockThatComesBackIsTakenAgain) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  const auto blocks = take_all();
  EXPECT_FALSE(area.has_free());
  area.give_back(blocks[3]);
  ASSERT_TRUE(area.has_free());
  EXPECT_EQ(area.take().base, blocks[3].base);
  EXPECT_FALSE(area.has_free());
}

TEST_F(Stagings, WhatTheLinkRefusesChangesNothing) {
  endpoint();
  ASSERT_EQ(grow(), 0);
  const auto before = take_all();
  link->refuse = [](const auto&) { return -ENOSPC; };
  EXPECT_EQ(grow(), -ENOSPC);
  EXPECT_FALSE(area.has_free());
  link->refuse = {};
  ASSERT_EQ(grow(), 0);
  EXPECT_EQ(take_all().size(), before.size());
}

TEST_F(Stagings, AtTheEndAllIsUnmapped) {
  endpoint();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(grow(), 0);
  {
    const std::lock_guard control(domain->control_mutex());
    area.unbind();
  }
  EXPECT_FALSE(area.has_free());
  EXPECT_EQ(link->count(Kind::kUnmap), link->count(Kind::kMap));
}

}  // namespace
}  // namespace stp::managed
