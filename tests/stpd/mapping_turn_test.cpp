// SPDX-License-Identifier: BSD-3-Clause
#include "libst/os/mapping_turn.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <vector>

namespace stp::os {
namespace {

constexpr std::size_t kMany = std::size_t{64} << 20;

std::byte* map_many() {
  auto* const at =
      ::mmap(nullptr, kMany, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return static_cast<std::byte*>(at);
}

TEST(MappingTurn, ItsTimeOffCounts) {
  MappingTurn::time_off() = {};
  { const MappingTurn turn; }
  EXPECT_NE(MappingTurn::time_off().count(), 0);
}

// Each of the many turns is a little while off, as others map pages in meanwhile. Once more if the
// machine has stopped this thread for long in one of them.
TEST(MappingTurn, ManyShortOnesOfUnmappingDoNotCount) {
  constexpr int kTries = 20;
  const std::chrono::nanoseconds before{12'345};
  for (int i = 0; i < kTries; ++i) {
    MappingTurn::time_off() = before;
    unmap_in_turns(map_many(), kMany);
    if (MappingTurn::time_off() == before) return;
  }
  EXPECT_EQ(MappingTurn::time_off(), before);
}

TEST(MappingTurn, PartsAreAllOfTheMemoryUntilOneIsRefused) {
  std::vector<std::byte> memory(2 * kUnmappedAtOnce + 1);
  std::size_t all = 0;
  const auto add = [&](const std::byte* at, std::size_t part) {
    EXPECT_EQ(at, memory.data() + all);
    EXPECT_LE(part, kUnmappedAtOnce);
    all += part;
    return true;
  };
  EXPECT_TRUE(in_parts(memory.data(), memory.size(), kUnmappedAtOnce, add));
  EXPECT_EQ(all, memory.size());
  EXPECT_FALSE(in_parts(memory.data(), memory.size(), kUnmappedAtOnce,
                        [&](const std::byte*, std::size_t part) {
                          all += part;
                          return false;
                        }));
  EXPECT_EQ(all, memory.size() + kUnmappedAtOnce);
}

}  // namespace
}  // namespace stp::os
