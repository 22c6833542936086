// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/places.h"

#include <gtest/gtest.h>

#include <vector>

namespace stp::test {
namespace {

using fi::OfHost;
using fi::rdm::kMostConnections;
using fi::rdm::Places;

class RdmPlaces : public testing::Test {
 protected:
  static constexpr std::size_t kKept = 1'000;

  // So many connections of that host are made, as far as there are places.
  std::size_t connect(const std::string& host, std::size_t count) {
    std::size_t made = 0;
    for (const auto has = places.of(host); made < count && places.is_free(*has, all); ++made) {
      ++has->connections;
      ++all.connections;
      held.push_back(has);
    }
    return made;
  }

  Places places{kKept};
  OfHost all;
  std::vector<std::shared_ptr<OfHost>> held;  // as connections do
};

TEST_F(RdmPlaces, OneHostLeavesSomeToOthers) {
  EXPECT_EQ(connect("a", 2'000), kMostConnections);
  EXPECT_EQ(connect("b", 2'000), Places::kFew);
  EXPECT_EQ(connect("c", 2'000), Places::kFew);
  EXPECT_EQ(connect("a", 1), 0U);
}

TEST_F(RdmPlaces, ThereAreNoMore) {
  std::size_t made = 0;
  for (int host = 0; host < 200; ++host) made += connect(std::to_string(host), 10);
  EXPECT_EQ(made, Places::kMost);
}

// It has gone, and what it has brought waits for receives that never come.
TEST_F(RdmPlaces, WhatAHostHasLeftCountsAsItsOwn) {
  const auto gone = places.of("a");
  gone->left = all.left = kMostConnections * kKept;
  EXPECT_EQ(connect("a", 1), 0U);
  EXPECT_EQ(connect("b", 20), Places::kFew);
}

TEST_F(RdmPlaces, HostsThatHaveNothingAreForgotten) {
  const auto stays = places.of("a");
  stays->left = 7;
  for (int host = 0; host < 5'000; ++host) places.of(std::to_string(host));
  EXPECT_EQ(places.of("a"), stays);
  EXPECT_EQ(places.of("0")->connections, 0U);
}

}  // namespace
}  // namespace stp::test
