// SPDX-License-Identifier: BSD-3-Clause
// Clients that do anything they like, by seed: beside each of them a pair that behaves goes on as
// if nobody else were there, and nothing of them stays.
#include <random>

#include "tests/stpd/hostile_client.h"
#include "tests/stpd/served_pair.h"

namespace stp::stpd {
namespace {

using HostileTest = testing::TestWithParam<std::uint64_t>;

TEST_P(HostileTest, HurtsOnlyItself) {
  ServedPair pair;
  for (std::uint32_t i = 0; i < 60; ++i) {
    Hostile(pair.path, std::mt19937_64(GetParam() * 1'000 + i)).live();
    ASSERT_TRUE(pair.talks(2 * i)) << "after client " << i;
  }
  EXPECT_TRUE(pair.is_alone()) << pair.client_count();
  // They were not turned away before they could do harm.
  const auto turn = pair.service.drive();
  const auto& counters = turn->node().counters();
  EXPECT_GT(counters.get(Counter::kRingBroken) + counters.get(Counter::kTxRefused), 0U);
  EXPECT_GT(pair.server.counts().bad_messages, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace stp::stpd
