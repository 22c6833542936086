// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/tidying.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

TEST(Tidying, what_ended_is_freed_in_slices_of_later_turns) {
  constexpr int kMxs = 3'000;
  Mechanisms with;
  Buffers buffers(12, 1);
  with.vcs.endpoint.receive = BufxRange(0, 16, 12);
  const auto all = buffers.all();
  RegionId region = kNoneId;
  ASSERT_EQ(with.memory.map(with.vcs.endpoint, Direction::kReceive, 0, {&all, 1}, region), 0);
  std::uint16_t mx = 0;
  for (int i = 0; i < kMxs; ++i)
    ASSERT_EQ(with.memory.alloc_mx(region, kNoneId, permit::kData, mx), 0);
  EXPECT_FALSE(with.tidying.untidy());
  ASSERT_EQ(with.memory.unmap(region), 0);
  int turns = 0;
  for (; turns < 100 && with.tidying.untidy(); ++turns) with.tidying.turn();
  EXPECT_GE(turns, 2) << "no turn frees all of it";
  EXPECT_LE(turns, 3);
}

}  // namespace
}  // namespace stp::test
