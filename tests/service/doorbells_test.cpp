// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "libst/service/client_page.h"

namespace stp::service {
namespace {

std::vector<std::uint32_t> collect(Doorbells& bells, std::uint32_t channels) {
  std::vector<std::uint32_t> rung;
  bells.collect(channels, [&](std::uint32_t channel) { rung.push_back(channel); });
  return rung;
}

TEST(Doorbells, EveryBellRungIsCollectedOnce) {
  auto const bells = std::make_unique<Doorbells>();
  EXPECT_FALSE(bells->any());
  for (auto const channel : {0U, 63U, 64U, 4'095U, 4'096U, 65'535U, 64U}) bells->ring(channel);
  EXPECT_TRUE(bells->any());
  EXPECT_EQ(collect(*bells, kMaxChannels),
            (std::vector<std::uint32_t>{0, 63, 64, 4'095, 4'096, 65'535}));
  EXPECT_FALSE(bells->any());
  EXPECT_TRUE(collect(*bells, kMaxChannels).empty());
}

TEST(Doorbells, BellsOfChannelsThatDoNotExistAreIgnored) {
  auto const bells = std::make_unique<Doorbells>();
  for (std::uint32_t channel = 0; channel < kMaxChannels; ++channel) bells->ring(channel);
  EXPECT_EQ(collect(*bells, 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(collect(*bells, 0).empty());
}

}  // namespace
}  // namespace stp::service
