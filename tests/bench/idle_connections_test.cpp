// SPDX-License-Identifier: BSD-3-Clause
// The memory of an idle connection, and that a Node can hold as many connections as there are
// Ports.
#include "tests/bench/many_connections.h"
#include "tools/sim/live_bytes.h"

namespace stp::bench {
namespace {

constexpr std::size_t kMany = 60'000;

TEST(IdleConnections, cost_at_most_2_KiB_each_beyond_their_users_rings) {
  const auto before = test::live_bytes();
  ManyConnections many(kMany);
  const auto cost = test::live_bytes() - before - many.channel_bytes();
  EXPECT_LE(cost / kMany, 2'048U);
  RecordProperty("bytes_per_idle_connection", static_cast<int>(cost / kMany));
}

TEST(IdleConnections, sixty_thousand_work_on_one_node) {
  ManyConnections many(kMany);
  EXPECT_EQ(many.node().vc_count(), kMany);
  for (std::size_t i = 0; i < kMany; i += 997) {
    many.open_region(i);
    for (std::uint32_t b_num = 0; b_num < 3; ++b_num) {
      const auto frame = many.put(i, b_num);
      const Bytes bytes(frame);
      many.node().receive({&bytes, 1}, many.now());
    }
  }
  EXPECT_EQ(many.node().counters().get(Counter::kRxBlocks), (kMany + 996) / 997 * 3);
}

}  // namespace
}  // namespace stp::bench
