// SPDX-License-Identifier: BSD-3-Clause
// What is on its way to clients is bounded for all together (stpd --granted), and each has its
// share of it, whatever the others and their peers do.
#include "tests/host/service_fixture.h"

namespace stp::host {
namespace {

using wire::Op;

class SharedGrants : public ServiceFixture {
 protected:
  static constexpr std::uint32_t kBlocks = 4;  // may be on their way

  SharedGrants() : ServiceFixture(kBlocks * kBuffer), far(service.drive()->add_client(false)) {}

  // A connection on which `receiver` gets data from a sender far away.
  struct Flow {
    ClientId receiver;
    End near_end, far_end;
    std::uint16_t mx;
    std::vector<std::byte> memory;
  };
  std::unique_ptr<Flow> flow_to(ClientId client) {
    auto flow = std::make_unique<Flow>();
    flow->receiver = client;
    flow->memory.resize(kBuffer);
    const auto endpoint = open(client), sender = open(far);
    EXPECT_EQ(on_endpoint(client, ipc::RequestKind::kListen, endpoint), 0);
    EXPECT_EQ(on_endpoint(far, ipc::RequestKind::kConnect, sender), 0);
    flow->far_end = take_end();
    turn();
    EXPECT_EQ(on_endpoint(client, ipc::RequestKind::kAccept, endpoint), 0);
    flow->near_end = take_end();
    EXPECT_EQ(on_endpoint(client, ipc::RequestKind::kUnlisten, endpoint), 0);
    EXPECT_EQ(map(client, endpoint, Direction::kReceive, flow->memory), 0);
    EXPECT_EQ(on_region(client, ipc::RequestKind::kAllocMx, reply.region), 0);
    flow->mx = static_cast<std::uint16_t>(reply.mx);
    EXPECT_EQ(map(far, sender, Direction::kTransmit, source), 0);
    return flow;
  }
  // CTS for `count` Blocks of as many Transfers, to be seen with the next turn.
  void grant(Flow& flow, std::uint32_t count) {
    for (std::uint32_t id = 1; id <= count; ++id) {
      SendEntry cts{};
      cts.header.op_flags = wire::op_flags(Op::kClearToSend);
      cts.header.param = 14;
      cts.header.mx = flow.mx;
      cts.header.d_id = id;
      cts.header.s_id = 1'000 + id;
      ASSERT_TRUE(flow.near_end.channel.send(cts));
    }
    page_of(flow.receiver).bells.ring(flow.near_end.bell);
  }
  // The sender does as it was told, once: how many Blocks it had been granted.
  std::uint32_t send_what_was_granted(Flow& flow) {
    std::uint32_t count = 0;
    ReceivedEntry cts;
    for (; flow.far_end.channel.receive(cts); ++count) {
      SendEntry data{};
      data.header.op_flags = wire::op_flags(Op::kData);
      data.header.mx = cts.header.mx;
      data.header.d_id = cts.header.s_id;
      data.length = kBuffer;
      EXPECT_TRUE(flow.far_end.channel.send(data));
    }
    if (count != 0) page_of(far).bells.ring(flow.far_end.bell);
    return count;
  }
  static std::uint32_t arrived(Flow& flow) {
    std::uint32_t count = 0;
    for (ReceivedEntry block; flow.near_end.channel.receive(block);)
      count += block.header.op() == Op::kData ? 1 : 0;
    return count;
  }
  std::uint64_t held() { return service.drive()->node().counters().get(Counter::kCtsHeld); }

  const ClientId far;
  std::vector<std::byte> source = std::vector<std::byte>(kBuffer, std::byte{0x5a});
};

TEST_F(SharedGrants, OfAllClientsTogetherAreBounded) {
  const auto hers = flow_to(alice), his = flow_to(bob);
  grant(*hers, kBlocks);
  grant(*his, kBlocks);
  service.drive()->poll();
  EXPECT_EQ(held(), kBlocks);
  std::uint32_t count = 0;
  for (int i = 0; i < 20; ++i, turn()) {
    send_what_was_granted(*hers);
    send_what_was_granted(*his);
    count += arrived(*hers) + arrived(*his);
  }
  EXPECT_EQ(count, 2 * kBlocks);
}

TEST_F(SharedGrants, OneWhoseSendersAreSilentHoldsUpNobodyElse) {
  const auto hers = flow_to(alice), his = flow_to(bob);
  grant(*his, 10 * kBlocks);
  service.drive()->poll();
  EXPECT_EQ(held(), 9 * kBlocks);
  grant(*hers, 3);
  std::uint32_t count = 0;
  // A Block of hers each time around, long before what he is owed is written off.
  for (std::uint32_t i = 1; i <= 3; ++i) {
    turn();
    send_what_was_granted(*hers);
    turn();
    count += arrived(*hers);
    EXPECT_GE(count, i);
  }
  EXPECT_EQ(arrived(*his), 0U);
}

TEST_F(SharedGrants, OneClientIsOneHoweverManyEndpointsItOpens) {
  const auto first = flow_to(bob), second = flow_to(bob), third = flow_to(bob);
  grant(*first, kBlocks);
  grant(*second, kBlocks);
  grant(*third, kBlocks);
  service.drive()->poll();
  EXPECT_EQ(held(), 2 * kBlocks);
}

TEST_F(SharedGrants, OfOneWhoGoesAreOthersAgain) {
  const auto hers = flow_to(alice), his = flow_to(bob);
  grant(*his, kBlocks);
  service.drive()->poll();
  grant(*hers, kBlocks);
  service.drive()->poll();
  service.drive()->remove_client(bob);
  turn();
  EXPECT_EQ(send_what_was_granted(*hers), kBlocks);
  turn();
  EXPECT_EQ(arrived(*hers), kBlocks);
}

}  // namespace
}  // namespace stp::host
