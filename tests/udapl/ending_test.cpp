// SPDX-License-Identifier: BSD-3-Clause
// How connections end, and the events at both sides. Protection Zones.
#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class EpEnding : public Dat {
 protected:
  void send(std::size_t length, std::uint64_t cookie) {
    const LmrTriplet from[] = {client.at(0, length)};
    ASSERT_EQ(held(client.ep)->post_send(from, cookie, 0), Result::kSuccess);
  }
};
STP_BOTH_WAYS(EpEnding);

// protocol: 9.34
TEST_P(EpEnding, BothSidesHearThatAConnectionBroke) {
  connect();
  const LmrTriplet into[] = {server.at(0, 4)};
  ASSERT_EQ(held(server.ep)->post_recv(into, 1, 0), Result::kSuccess);
  send(5, 1);
  EXPECT_EQ(DatSide::next(*server.recv).status, DtoStatus::kLocalLength);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
}

TEST_P(EpEnding, BothSidesHearThatAConsumerHasDisconnected) {
  for (const auto abrupt : {true, false}) {
    connect();
    ASSERT_EQ(client.ep->disconnect(abrupt), Result::kSuccess);
    EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kDisconnected);
    EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kDisconnected);
    ASSERT_EQ(client.ep->reset(), Result::kSuccess);
    ASSERT_EQ(server.ep->reset(), Result::kSuccess);
  }
}

// protocol: 9.35
TEST_P(EpEnding, AMessageWithoutAReceiveBreaksTheConnectionInTheEnd) {
  server.attr.receive_wait = 50'000;
  connect();
  send(40'000, 7);  // too long for the ring: the receiver is asked
  send(40'000, 8);
  const auto first = DatSide::next(*client.request);
  EXPECT_EQ(first.cookie, 7U);
  EXPECT_EQ(first.status, DtoStatus::kReceiverNotReady);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kFlushed);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
}

TEST_P(EpEnding, AShortMessageWithoutAReceiveDoesSoToo) {
  server.attr.receive_wait = 50'000;
  connect();
  send(10, 7);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
}

TEST_P(EpEnding, AReceiveInTimeLetsTheMessageIn) {
  connect();
  send(10'000, 7);
  const LmrTriplet into[] = {server.at(0, 10'000)};
  ASSERT_EQ(held(server.ep)->post_recv(into, 1, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*server.recv).status, DtoStatus::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kSuccess);
}

TEST_P(EpEnding, AnLmrIsReachedByThePeersOfItsZoneAlone) {
  connect();
  const auto zone = server.pz;
  ASSERT_EQ(Pz::create(*server.ia, server.pz), Result::kSuccess);
  const auto to = server.make_ep(), from = client.make_ep();
  connect(from, to);
  const LmrTriplet data[] = {client.at(0, 64)};
  const RmrTriplet remote{server.at(0, 64).address, 64, server.lmr->rmr_context()};
  ASSERT_EQ(held(client.ep)->post_rdma_write(data, 1, remote, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kSuccess);
  server.buffer[0] = 0x55;
  ASSERT_EQ(held(from)->post_rdma_write(data, 2, remote, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kRemoteAccess);
  EXPECT_EQ(server.buffer[0], 0x55);
}

}  // namespace
}  // namespace stp::test
