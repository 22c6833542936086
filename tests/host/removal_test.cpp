// SPDX-License-Identifier: BSD-3-Clause
// A client can go at any moment. Nothing of it stays, and nobody else notices.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "tests/host/service_fixture.h"
#include "tests/host/usage.h"

namespace stp::host {
namespace {

class RemovalTest : public ServiceFixture {
 protected:
  // Alice goes; bob, who has done nothing wrong, is served as before.
  void remove_alice() {
    service.drive()->remove_client(alice);
    EXPECT_EQ(ask(alice, ipc::RequestKind::kHello), -EBADF);
    turn(20);
    EXPECT_EQ(service.drive()->client_count(), 1U);
    EXPECT_EQ(ask(bob, ipc::RequestKind::kHello), 0);
  }
};

TEST_F(RemovalTest, BeforeItHasAnything) {
  remove_alice();
}

TEST_F(RemovalTest, WithAnEndpoint) {
  open(alice);
  remove_alice();
}

TEST_F(RemovalTest, WhileListening) {
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, open(alice)), 0);
  remove_alice();
  // Its UPort is free again.
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, open(bob)), 0);
}

TEST_F(RemovalTest, WhileConnectionsWaitToBeAccepted) {
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, open(alice)), 0);
  const auto endpoint = open(bob);
  std::vector<End> ends;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kConnect, endpoint), 0);
    ends.push_back(take_end());
  }
  turn();
  remove_alice();
  for (const auto& end : ends) EXPECT_EQ(end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(RemovalTest, WhileConnecting) {
  port->cut = true;
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, open(alice)), 0);
  remove_alice();
  EXPECT_EQ(service.drive()->node().vc_count(), 0U);
}

TEST_F(RemovalTest, WhileConnectedTellsThePeer) {
  connect();
  remove_alice();
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(RemovalTest, WhileClosing) {
  connect();
  ASSERT_EQ(on_vc(alice, ipc::RequestKind::kClose, alice_end.vc), 0);
  remove_alice();
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(RemovalTest, AfterClosingAnEndpointThatStillEnds) {
  connect();
  port->cut = true;
  ASSERT_EQ(on_vc(alice, ipc::RequestKind::kClose, alice_end.vc), 0);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, alice_endpoint), 0);
  service.drive()->remove_client(alice);
  EXPECT_EQ(service.drive()->client_count(), 2U);  // its Request_Disconnect is on its way
  port->cut = false;
  while (service.drive()->client_count() == 2) turn(1);
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(RemovalTest, WithMemoryTheLinkStillReads) {
  const auto alive = send_from_kept_memory();
  service.drive()->remove_client(alice);
  turn();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(service.drive()->client_count(), 2U);
  port->keeps_frames = false;
  turn(20);
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(service.drive()->client_count(), 1U);
}

TEST_F(RemovalTest, WithBrokenRings) {
  connect();
  // Indices that no user's side can reach.
  auto& control = *reinterpret_cast<ChannelControl*>(alice_end.memory->data());
  control.tx_head.store(0x12345678);
  control.rx_tail.store(0x87654321);
  page_of(alice).bells.ring(alice_end.bell);
  turn();
  remove_alice();
  EXPECT_NE(bob_end.channel.state(), ChannelState::kOpen);
}

TEST_F(RemovalTest, ManyTimesOverLeavesNothing) {
  for (int i = 0; i < 200; ++i) {
    connect();
    if (i % 2 != 0) {
      ASSERT_TRUE(send_nop(alice, alice_end, 1));
    }
    turn(i % 5);
    service.drive()->remove_client(alice);
    turn(i % 3);
    service.drive()->remove_client(bob);
    turn(20);
    ASSERT_EQ(service.drive()->client_count(), 0U) << i;
    ASSERT_EQ(service.drive()->node().vc_count(), 0U) << i;
    alice = service.drive()->add_client(false);
    bob = service.drive()->add_client(false);
  }
}

// ---- a client that has much goes in slices: between two of them others are served

class RemovalInSlices : public ServiceFixture {
 protected:
  // One hold of the drive lock takes away so many things at most: 64 of clients that leave, 64 Mx
  // of what is over, and 64 endpoints whose last region that was.
  static constexpr std::uint64_t kOfOneTurn = 3 * 64;

  [[nodiscard]] std::uint64_t things() const {
    std::uint64_t sum = 0;
    for (const auto resource : {Resource::kEndpoints, Resource::kRegions, Resource::kMx})
      sum += used(*budgets, resource);
    return sum;
  }
  // Turns until nothing is left, looking that no turn takes away more than it may, and that bob is
  // answered after each.
  void expect_slices() {
    auto left = things();
    for (int turns = 0; left != 0; ++turns) {
      ASSERT_LT(turns, 20'000);
      service.drive()->poll();
      const auto now = things();
      ASSERT_LE(left - now, kOfOneTurn);
      left = now;
      ASSERT_EQ(ask(bob, ipc::RequestKind::kHello), 0);
    }
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kBuffer);
};

TEST_F(RemovalInSlices, AClientWithManyEndpointsRegionsAndMxGoesInSlices) {
  for (int e = 0; e < 200; ++e) {
    const auto endpoint = open(alice);
    auto request = request_for(ipc::RequestKind::kMap);
    request.endpoint = endpoint;
    request.direction = static_cast<std::uint32_t>(Direction::kReceive);
    for (request.base = 0; request.base < 10; ++request.base) {
      attachments.pieces = {memory};
      ASSERT_EQ(ask(alice, request), 0);
    }
  }
  const auto region = reply.region;
  while (on_region(alice, ipc::RequestKind::kAllocMx, region) == 0) {
  }
  const auto before = things();
  ASSERT_EQ(before, 200U + 2'000U + Quotas{}.mxs);
  service.drive()->remove_client(alice);
  EXPECT_LE(before - things(), kOfOneTurn);
  expect_slices();
  turn();  // the last slice finds that nothing is left
  EXPECT_EQ(service.drive()->client_count(), 1U);
}

TEST_F(RemovalInSlices, ARegionWithManyMxIsUnmappedAtOnceAndForgottenInSlices) {
  ASSERT_EQ(map(alice, open(alice), Direction::kReceive, memory), 0);
  const auto region = reply.region;
  std::size_t mxs = 0;
  while (on_region(alice, ipc::RequestKind::kAllocMx, region) == 0) ++mxs;
  int result = 0;
  for (int asked = 0; asked < 20'000; ++asked) {
    result = on_region(alice, ipc::RequestKind::kUnmap, region);
    if (result != -EINPROGRESS) break;
    turn(1);
  }
  EXPECT_EQ(result, 0);
  EXPECT_GE(used(*budgets, Resource::kMx), mxs - kOfOneTurn * 2);
  for (int turns = 0; turns < 1'000; ++turns) service.drive()->poll();
  EXPECT_EQ(used(*budgets, Resource::kMx), 0U);
}

TEST_F(RemovalInSlices, SeveralGoAtOnceAndEachOfThemComesToItsEnd) {
  std::vector<ClientId> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(service.drive()->add_client(false));
    for (int e = 0; e < 20; ++e)
      ASSERT_EQ(on_endpoint(others.back(), ipc::RequestKind::kConnect, open(others.back())), 0);
  }
  for (const auto other : others) service.drive()->remove_client(other);
  for (int turns = 0; turns < 200 && service.drive()->client_count() != 2; ++turns)
    service.drive()->poll();
  EXPECT_EQ(service.drive()->client_count(), 2U);
}

TEST_F(RemovalInSlices, RegionsThatNobodyAsksAfterAgainGoWithTheirEndpoint) {
  const auto alive = send_from_kept_memory();
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, alice_region), -EINPROGRESS);
  port->keeps_frames = false;
  turn();
  EXPECT_TRUE(alive.expired());
  ASSERT_EQ(on_vc(alice, ipc::RequestKind::kClose, alice_end.vc, true), 0);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, alice_endpoint), 0);
  turn(50);
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, alice_region), -EBADF);
  EXPECT_EQ(used(*budgets, Resource::kRegions), 1U);  // bob's
}

TEST_F(RemovalInSlices, WhateverIsThrownWhileARequestIsAnsweredIsTheAnswer) {
  service.drive()->add_counters(
      []() -> std::vector<port::PortCounter> { throw std::runtime_error("no counters today"); });
  auto request = request_for(ipc::RequestKind::kStats);
  request.index = kCounterCount;
  EXPECT_EQ(ask(alice, request), -EIO);
  EXPECT_EQ(ask(alice, ipc::RequestKind::kHello), 0);
}

TEST(ClientIds, AreThoseOfNobodyElse) {
  const std::unordered_map<ClientId, int> in_use{{1, 0}, {2, 0}, {~ClientId{0}, 0}};
  EXPECT_EQ(next_client_id(5, in_use), 6U);
  EXPECT_EQ(next_client_id(~ClientId{0} - 1, in_use), 3U);
}

}  // namespace
}  // namespace stp::host
