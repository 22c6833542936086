// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "stp/base/scarce_memory.h"

namespace stp::test {
namespace {

using stpd::MemoryReserve;

class MemoryReserveTest : public testing::Test {
 protected:
  struct Block {
    std::byte* at;
    std::size_t size;
    int mark;
    [[nodiscard]] bool is_whole() const {
      for (std::size_t i = 0; i < size; i += MemoryReserve::kLeast)
        if (at[i] != static_cast<std::byte>(mark)) return false;
      return true;
    }
  };
  void fill(std::size_t size, std::size_t alignment, int mark) {
    auto* const made = static_cast<std::byte*>(reserve.take(size, alignment));
    if (made == nullptr) return;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made) % alignment, 0U);
    EXPECT_TRUE(reserve.has(made) && reserve.has(made + size - 1));
    for (std::size_t i = 0; i < size; i += MemoryReserve::kLeast) made[i] = std::byte(mark);
    blocks.push_back({made, size, mark});
  }
  MemoryReserve reserve;
  std::vector<Block> blocks;
};

TEST_F(MemoryReserveTest, BlocksOfAnySizeOverlapNoneAndBecomeOneAgain) {
  std::mt19937 dice(1);
  for (int i = 0; i < 4'000; ++i) {
    if (dice() % 3 != 0) {
      fill(1 + dice() % (dice() % 16 == 0 ? 100'000 : 300), 16U << dice() % 5, i % 256);
    } else if (!blocks.empty()) {
      std::swap(blocks[dice() % blocks.size()], blocks.back());
      ASSERT_TRUE(blocks.back().is_whole());
      reserve.give_back(blocks.back().at);
      blocks.pop_back();
    }
  }
  for (const auto& block : blocks) {
    ASSERT_TRUE(block.is_whole());
    reserve.give_back(block.at);
  }
  EXPECT_EQ(reserve.used(), 0U);
  auto* const all = reserve.take(MemoryReserve::kSize, 1);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(reserve.take(1, 1), nullptr);
  reserve.give_back(all);
  EXPECT_EQ(reserve.take(MemoryReserve::kSize + 1, 1), nullptr);
}

TEST_F(MemoryReserveTest, HalfOfItIsForThoseWhoAreThere) {
  auto* const half = reserve.take(MemoryReserve::kScarce - MemoryReserve::kLeast, 1);
  EXPECT_TRUE(memory_is_scarce);
  reserve.give_back(half);
  EXPECT_FALSE(memory_is_scarce);
  auto* const little = reserve.take(1, 1);
  EXPECT_FALSE(memory_is_scarce);
  reserve.give_back(little);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// stpd deletes null pointers, and what the system has given, all the same.
TEST(MemoryReserveWithoutAddresses, HasNothing) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  MemoryReserve reserve;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &usual), 0);
  EXPECT_FALSE(reserve.has(nullptr));
  EXPECT_EQ(reserve.take(1, 1), nullptr);
}
#endif

}  // namespace
}  // namespace stp::test
