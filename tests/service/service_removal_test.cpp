// SPDX-License-Identifier: BSD-3-Clause
// A client can go at any moment. Nothing of it stays, and nobody else notices.
#include <functional>
#include <vector>

#include "tests/service/service_fixture.h"

namespace stp::service {
namespace {

class ServiceRemoval : public ServiceFixture {
 protected:
  // Alice goes; bob, who has done nothing wrong, is served as before.
  void remove_alice() {
    service.remove_client(alice);
    EXPECT_EQ(ask(alice, RequestKind::kHello), -EBADF);
    turn(20);
    EXPECT_EQ(service.client_count(), 1U);
    EXPECT_EQ(ask(bob, RequestKind::kHello), 0);
  }
};

TEST_F(ServiceRemoval, BeforeItHasAnything) {
  remove_alice();
}

TEST_F(ServiceRemoval, WithAnEndpoint) {
  open(alice);
  remove_alice();
}

TEST_F(ServiceRemoval, WhileListening) {
  ASSERT_EQ(on_endpoint(alice, RequestKind::kListen, open(alice)), 0);
  remove_alice();
  // Its UPort is free again.
  EXPECT_EQ(on_endpoint(bob, RequestKind::kListen, open(bob)), 0);
}

TEST_F(ServiceRemoval, WhileConnectionsWaitToBeAccepted) {
  ASSERT_EQ(on_endpoint(alice, RequestKind::kListen, open(alice)), 0);
  const auto endpoint = open(bob);
  std::vector<End> ends;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(on_endpoint(bob, RequestKind::kConnect, endpoint), 0);
    ends.push_back(take_end());
  }
  turn();
  remove_alice();
  for (const auto& end : ends) EXPECT_EQ(end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(ServiceRemoval, WhileConnecting) {
  port->cut = true;
  ASSERT_EQ(on_endpoint(alice, RequestKind::kConnect, open(alice)), 0);
  remove_alice();
  EXPECT_EQ(service.node().vc_count(), 0U);
}

TEST_F(ServiceRemoval, WhileConnectedTellsThePeer) {
  connect();
  remove_alice();
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(ServiceRemoval, WhileClosing) {
  connect();
  ASSERT_EQ(on_vc(alice, RequestKind::kClose, alice_end.vc), 0);
  remove_alice();
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(ServiceRemoval, AfterClosingAnEndpointThatStillEnds) {
  connect();
  port->cut = true;
  ASSERT_EQ(on_vc(alice, RequestKind::kClose, alice_end.vc), 0);
  ASSERT_EQ(on_endpoint(alice, RequestKind::kCloseEndpoint, alice_endpoint), 0);
  service.remove_client(alice);
  EXPECT_EQ(service.client_count(), 2U);  // its Request_Disconnect is on its way
  port->cut = false;
  while (service.client_count() == 2) turn(1);
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
}

TEST_F(ServiceRemoval, WithMemoryTheLinkStillReads) {
  const auto alive = send_from_kept_memory();
  service.remove_client(alice);
  turn();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(service.client_count(), 2U);
  port->keeps_frames = false;
  turn(20);
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(service.client_count(), 1U);
}

TEST_F(ServiceRemoval, WithBrokenRings) {
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

TEST_F(ServiceRemoval, ManyTimesOverLeavesNothing) {
  for (int i = 0; i < 200; ++i) {
    connect();
    if (i % 2 != 0) {
      ASSERT_TRUE(send_nop(alice, alice_end, 1));
    }
    turn(i % 5);
    service.remove_client(alice);
    turn(i % 3);
    service.remove_client(bob);
    turn(20);
    ASSERT_EQ(service.client_count(), 0U) << i;
    ASSERT_EQ(service.node().vc_count(), 0U) << i;
    alice = service.add_client(false);
    bob = service.add_client(false);
  }
}

}  // namespace
}  // namespace stp::service
