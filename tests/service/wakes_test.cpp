// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/wakes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/service/service_fixture.h"

namespace stp::service {
namespace {

class WakesTest : public testing::Test {
 protected:
  Client& add() { return *clients.add(false); }
  static Bell add_channel(Client& client, bool gathered) {
    auto channel = channel_without_connection();
    channel->control().gathered.store(gathered ? 1U : 0U);
    return client.channels.add(std::move(channel));
  }
  static std::unique_ptr<Channel> channel_without_connection() {
    auto channel = std::make_unique<Channel>();
    channel->memory = SharedMemory::create_own(ChannelGeometry{}.size());
    return channel;
  }
  static std::uint32_t events_of(const Client& client) { return client.page().events; }

  Allowances allow{nullptr, 0, 1};
  ClientTable clients{allow};
  Wakes wakes{clients};
};

TEST_F(WakesTest, WhateverHappensInATurnTheWordOfThePageWakesOnce) {
  auto& client = add();
  const auto one = add_channel(client, true), two = add_channel(client, true);
  for (int i = 0; i < 3; ++i) {
    wakes.page(client);
    wakes.channel(client, one);
    wakes.channel(client, two);
  }
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 1U);
  wakes.page(client);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 2U);
}

// With no time at all it wakes one thread each time.
TEST_F(WakesTest, OneWithManyChannelsIsNotWokenBeforeTheOthers) {
  auto& many = add();
  auto& few = add();
  for (int i = 0; i < 3; ++i) {
    const auto number = add_channel(many, false);
    wakes.channel(many, number);
    wakes.channel(many, number);
  }
  wakes.page(few);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_EQ(events_of(few), 1U);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_FALSE(wakes.go_on(0));
  EXPECT_EQ(events_of(many), 0U);
}

TEST_F(WakesTest, WhatHasGoneIsPassedOver) {
  auto& client = add();
  const auto number = add_channel(client, false);
  wakes.channel(client, number);
  client.channels.remove(number);
  EXPECT_EQ(add_channel(client, true), number);
  wakes.channel(client, number + 1);
  auto& gone = add();
  wakes.page(gone);
  gone.leaving = true;
  clients.forget_if_empty(gone);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 0U);
}

TEST_F(WakesTest, ChannelsOfConnectionsThatAreOverAreKeptUntilTheirTurn) {
  auto& many = add();
  auto& few = add();
  std::vector<std::weak_ptr<SharedMemory>> kept;
  for (int i = 0; i < 3; ++i) {
    auto channel = channel_without_connection();
    kept.push_back(channel->memory);
    wakes.over(many, std::move(channel));
  }
  wakes.page(few);
  const auto left = [&] {
    return std::count_if(kept.begin(), kept.end(), [](const auto& one) { return !one.expired(); });
  };
  EXPECT_EQ(left(), 3);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_EQ(left(), 2);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_EQ(events_of(few), 1U);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_FALSE(wakes.go_on(0));
  EXPECT_EQ(left(), 0);
}

TEST_F(WakesTest, AClientThatHasLeftStaysUntilItsThreadsAreWoken) {
  auto& client = add();
  const auto id = client.id;
  wakes.over(client, channel_without_connection());
  client.leaving = true;
  clients.forget_if_empty(client);
  ASSERT_NE(clients.find(id), nullptr);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(clients.find(id), nullptr);
}

using WakesOfAService = ServiceFixture;

TEST_F(WakesOfAService, ATurnWakesAClientOnceHoweverManyConnectionsItGets) {
  constexpr std::uint32_t kConnections = 6;
  const auto listener = open(bob);
  ASSERT_EQ(on_endpoint(bob, RequestKind::kListen, listener), 0);
  auto& page = page_of(bob);
  for (std::uint32_t i = 0; i < kConnections; ++i)
    ASSERT_EQ(on_endpoint(alice, RequestKind::kConnect, open(alice)), 0);
  for (int i = 0; i < 10; ++i) {
    const auto before = page.events.load();
    turn(1);
    EXPECT_LE(page.events.load() - before, 1U);
  }
  EXPECT_EQ(page.accepts.load(), kConnections);
  EXPECT_GT(page.events.load(), 0U);
}

TEST_F(WakesOfAService, ATurnWakesAClientOnceHoweverManyConnectionsEnd) {
  constexpr int kConnections = 6;
  const auto listener = open(bob);
  ASSERT_EQ(on_endpoint(bob, RequestKind::kListen, listener), 0);
  std::vector<End> ends;
  for (int i = 0; i < kConnections; ++i) {
    ASSERT_EQ(on_endpoint(alice, RequestKind::kConnect, open(alice)), 0);
    ASSERT_EQ(accept_soon(bob, listener), 0);
    ends.push_back(take_end());
    reinterpret_cast<ChannelControl*>(ends.back().memory->data())->gathered.store(1);
  }
  for (const auto& end : ends) EXPECT_EQ(on_vc(bob, RequestKind::kClose, end.vc), 0);
  auto& page = page_of(bob);
  const auto at_first = page.events.load();
  for (int i = 0; i < 10; ++i) {
    const auto before = page.events.load();
    turn(1);
    EXPECT_LE(page.events.load() - before, 1U);
  }
  for (const auto& end : ends) EXPECT_EQ(end.channel.state(), ChannelState::kClosed);
  EXPECT_GT(page.events.load(), at_first);
}

}  // namespace
}  // namespace stp::service
