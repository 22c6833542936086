// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/queue_share.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace stp::port {
namespace {

// Both ends follow the rule, and nothing else.
TEST(QueueShare, WithAQueueForEachPairAFrameArrivesAtTheShardOfItsPort) {
  for (unsigned senders = 1; senders <= Shards::kMost; ++senders) {
    for (unsigned receivers = 1; receivers <= Shards::kMost; ++receivers) {
      for (unsigned i = 0; i < senders; ++i) {
        const QueuesToSend to = queues_to_send(senders * receivers, {senders, i});
        for (const std::uint16_t port : std::to_array<std::uint16_t>({0, 1, 7, 1000, 65'535}))
          ASSERT_EQ(to.at(port) % receivers, port % receivers) << senders << " to " << receivers;
      }
    }
  }
}

TEST(QueueShare, NoQueueHasTwoSenders) {
  for (unsigned queues = 1; queues <= 40; ++queues) {
    for (unsigned shards = 1; shards <= Shards::kMost; ++shards) {
      std::set<unsigned> used;
      for (unsigned i = 0; i < shards; ++i) {
        const QueuesToSend to = queues_to_send(queues, {shards, i});
        for (unsigned n = 0; n < to.count; ++n) {
          EXPECT_TRUE(used.insert(to.first + n).second);
          EXPECT_LT(to.first + n, queues);
        }
      }
      EXPECT_GE(used.size(), std::min(queues, shards));
    }
  }
}

}  // namespace
}  // namespace stp::port
