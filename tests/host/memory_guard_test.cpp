// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/memory_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "libst/host/budgets.h"

namespace stp::host {
namespace {

constexpr std::size_t kPage = 4'096;

// Nobody touches this memory.
MutableBytes page(std::uintptr_t number, std::size_t pages = 1) {
  return {reinterpret_cast<std::byte*>(number * kPage), pages * kPage};
}

class GuardedRangesTest : public testing::Test {
 protected:
  Torn* owner_at(std::uintptr_t address) const {
    GuardedRanges::Range range;
    return ranges.find(address, range) ? range.torn : nullptr;
  }

  GuardedRanges ranges{64};
  Torn one{false}, other{false};
};

TEST_F(GuardedRangesTest, FindsTheRangeOfAnAddressAndItsOwner) {
  ASSERT_EQ(ranges.add(page(10, 2), &one), 0);
  ASSERT_EQ(ranges.add(page(12), &other), 0);
  EXPECT_EQ(owner_at(10 * kPage - 1), nullptr);
  EXPECT_EQ(owner_at(10 * kPage), &one);
  EXPECT_EQ(owner_at(12 * kPage - 1), &one);
  EXPECT_EQ(owner_at(12 * kPage), &other);
  EXPECT_EQ(owner_at(13 * kPage), nullptr);
  EXPECT_EQ(owner_at(0), nullptr);
  GuardedRanges::Range range;
  ASSERT_TRUE(ranges.find(11 * kPage + 5, range));
  EXPECT_EQ(range.begin, 10 * kPage);
  EXPECT_EQ(range.end, 12 * kPage);
}

TEST_F(GuardedRangesTest, ForgetsWhatIsRemovedAndNothingElse) {
  std::vector<std::uintptr_t> numbers;
  for (std::uintptr_t i = 1; i <= 50; ++i) numbers.push_back(2 * i);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(7));
  for (const auto number : numbers) ASSERT_EQ(ranges.add(page(number), &one), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(8));
  while (!numbers.empty()) {
    ranges.remove(page(numbers.back()));
    EXPECT_EQ(owner_at(numbers.back() * kPage), nullptr);
    numbers.pop_back();
    for (const auto number : numbers) ASSERT_EQ(owner_at(number * kPage), &one) << number;
  }
  ranges.remove(page(2));  // no harm
}

TEST_F(GuardedRangesTest, AFullTableRefusesOneMore) {
  for (std::uintptr_t i = 1; i <= ranges.most(); ++i) ASSERT_EQ(ranges.add(page(i), &one), 0);
  EXPECT_EQ(ranges.add(page(1'000), &one), -ENOMEM);
  ranges.remove(page(1));
  EXPECT_EQ(ranges.add(page(1'000), &one), 0);
}

// As the signal handler does.
TEST_F(GuardedRangesTest, IsReadWhileAnotherThreadChangesIt) {
  ASSERT_EQ(ranges.add(page(100), &one), 0);
  std::atomic<bool> changing{true};
  std::thread changer([&] {
    for (int round = 0; round < 2'000; ++round) {
      for (const std::uintptr_t at : {50, 150, 120}) ranges.add(page(at), &other);
      for (const std::uintptr_t at : {150, 50, 120}) ranges.remove(page(at));
    }
    changing = false;
  });
  while (changing) ASSERT_EQ(owner_at(100 * kPage), &one);
  changer.join();
}

// Each region of stpd is an entry, and takes a mapping, of which an operator may permit more.
TEST(MemoryGuardTable, HasRoomForAsManyRegionsAsTheKernelPermitsMappings) {
  EXPECT_GE(MemoryGuard::room(1'048'576), 1'048'576U);
  EXPECT_GE(MemoryGuard::room(65'530), std::size_t{1} << 17);
  EXPECT_LE(MemoryGuard::room(~std::uint64_t{0}), std::size_t{1} << 24);
  EXPECT_GE(MemoryGuard::room(most_mappings()), most_mappings());
  GuardedRanges many(MemoryGuard::room(1'048'576));
  Torn torn{false};
  constexpr std::uintptr_t kRegions = 200'000;  // the kernel's addresses come down
  for (auto i = kRegions; i > 0; --i) ASSERT_EQ(many.add(page(i), &torn), 0) << i;
  GuardedRanges::Range range;
  EXPECT_TRUE(many.find(kRegions * kPage, range));
  EXPECT_TRUE(many.find(1 * kPage, range));
}

}  // namespace
}  // namespace stp::host
