// SPDX-License-Identifier: BSD-3-Clause
// Connections, messages and RDMA between two EPs.
#include <cstring>
#include <thread>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class EpTest : public Dat {
 protected:
  EpState state_of(const std::shared_ptr<Ep>& ep) {
    EpState state{};
    bool recv = false, request = false;
    EXPECT_EQ(ep->status(state, recv, request), Result::kSuccess);
    return state;
  }
};
STP_BOTH_WAYS(EpTest);

TEST_P(EpTest, PrivateDataGoesBothWays) {
  client.ep = client.make_ep();
  server.ep = server.make_ep();
  ASSERT_EQ(ServicePoint::create_psp(*server.ia, 3000, server.requests, psp), Result::kSuccess);
  ASSERT_EQ(client.ep->connect("127.0.0.1", 0, 3000, kPatience, text("hello")), Result::kSuccess);
  EXPECT_EQ(state_of(client.ep), EpState::kActivePending);
  cr = next_request();
  EXPECT_EQ(std::memcmp(cr->data().bytes.data(), "hello", 5), 0);
  ASSERT_EQ(cr->accept(server.ep, text("come in")), Result::kSuccess);
  const auto active = DatSide::next(*client.connect);
  ASSERT_EQ(active.private_size, 7U);
  EXPECT_EQ(std::memcmp(active.private_data, "come in", 7), 0);
  EXPECT_EQ(DatSide::next(*server.connect).private_size, 0U);
  EXPECT_EQ(state_of(client.ep), EpState::kConnected);
  EXPECT_EQ(cr->reject({}), Result::kInvalidHandle);
}

TEST_P(EpTest, ARejectionTellsWhyAndTheEpCanBeResetAndUsedAgain) {
  client.ep = client.make_ep();
  ASSERT_EQ(ServicePoint::create_psp(*server.ia, 3000, server.requests, psp), Result::kSuccess);
  ASSERT_EQ(client.ep->connect("127.0.0.1", 0, 3000, kPatience, {}), Result::kSuccess);
  cr = next_request();
  ASSERT_EQ(cr->reject(text("no")), Result::kSuccess);
  const auto told = DatSide::next(*client.connect);
  EXPECT_EQ(told.number, EventNumber::kPeerRejected);
  EXPECT_EQ(told.private_size, 2U);
  EXPECT_EQ(state_of(client.ep), EpState::kDisconnected);
  ASSERT_EQ(client.ep->reset(), Result::kSuccess);
  ASSERT_EQ(psp->free(), Result::kSuccess);
  connect();
}

TEST_P(EpTest, WhereNobodyListensTheRequestIsRejectedByNoPeer) {
  client.ep = client.make_ep();
  ASSERT_EQ(client.ep->connect("127.0.0.1", 0, 3001, kPatience, {}), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kNonPeerRejected);
}

TEST_P(EpTest, AMessageOfSeveralSegmentsFillsThoseOfTheReceiveInTheirOrder) {
  connect();
  const LmrTriplet to[] = {server.at(1000, 10), server.at(3000, 0), server.at(2000, 100)};
  const LmrTriplet from[] = {client.at(5, 20), client.at(4000, 30)};
  std::memset(server.buffer.data(), 0, 4096);
  ASSERT_EQ(held(server.ep)->post_recv(to, 77, 0), Result::kSuccess);
  ASSERT_EQ(held(client.ep)->post_send(from, 88, 0), Result::kSuccess);
  const auto received = DatSide::next(*server.recv);
  EXPECT_EQ(received.cookie, 77U);
  EXPECT_EQ(received.length, 50U);
  EXPECT_EQ(received.dto, Dto::kReceive);
  const auto *got = server.buffer.data(), *sent = client.buffer.data();
  EXPECT_EQ(std::memcmp(got + 1000, sent + 5, 10), 0);
  EXPECT_EQ(std::memcmp(got + 2000, sent + 15, 10), 0);
  EXPECT_EQ(std::memcmp(got + 2010, sent + 4000, 30), 0);
  EXPECT_EQ(got[2040], 0);
  EXPECT_EQ(DatSide::next(*client.request).cookie, 88U);
}

TEST_P(EpTest, AnRdmaWriteIsThereBeforeALaterSendIsReceived) {
  connect();
  const RmrTriplet remote{reinterpret_cast<std::uint64_t>(server.buffer.data()) + 8192, 8192,
                          server.lmr->rmr_context()};
  for (int round = 0; round < 20; ++round) {
    std::memset(server.buffer.data() + 8192, round, 8192);
    const LmrTriplet data[] = {client.at(0, 8192)};
    const LmrTriplet note[] = {client.at(0, 8)};
    const LmrTriplet into[] = {server.at(0, 8)};
    ASSERT_EQ(held(server.ep)->post_recv(into, 1, 0), Result::kSuccess);
    ASSERT_EQ(held(client.ep)->post_rdma_write(data, 2, remote, 0), Result::kSuccess);
    ASSERT_EQ(held(client.ep)->post_send(note, 3, 0), Result::kSuccess);
    ASSERT_EQ(DatSide::next(*server.recv).status, DtoStatus::kSuccess);
    ASSERT_EQ(std::memcmp(server.buffer.data() + 8192, client.buffer.data(), 8192), 0);
    ASSERT_EQ(DatSide::next(*client.request).dto, Dto::kRdmaWrite);
    ASSERT_EQ(DatSide::next(*client.request).dto, Dto::kSend);
  }
}

TEST_P(EpTest, AnRdmaReadFillsItsSegments) {
  connect();
  const RmrTriplet remote{reinterpret_cast<std::uint64_t>(server.buffer.data()) + 100, 5000,
                          server.lmr->rmr_context()};
  const LmrTriplet into[] = {client.at(10'000, 1000), client.at(20'000, 4000)};
  ASSERT_EQ(held(client.ep)->post_rdma_read(into, 5, remote, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kSuccess);
  EXPECT_EQ(std::memcmp(client.buffer.data() + 10'000, server.buffer.data() + 100, 1000), 0);
  EXPECT_EQ(std::memcmp(client.buffer.data() + 20'000, server.buffer.data() + 1100, 4000), 0);
}

TEST_P(EpTest, AccessOutsideTheRmrMovesNothingAndBreaksTheConnection) {
  connect();
  std::shared_ptr<Rmr> rmr;
  ASSERT_EQ(Rmr::create(*server.ia, server.pz, rmr), Result::kSuccess);
  std::uint32_t context = 0;
  ASSERT_EQ(rmr->bind(server.at(0, 100), kRemoteWrite, false, *server.ep, 9, 0, context),
            Result::kSuccess);
  const auto bound = DatSide::next(*server.request);
  EXPECT_EQ(bound.number, EventNumber::kRmrBindCompletion);
  EXPECT_EQ(bound.cookie, 9U);
  std::memset(server.buffer.data(), 0, 200);
  const LmrTriplet data[] = {client.at(1, 64)};
  const auto base = reinterpret_cast<std::uint64_t>(server.buffer.data());
  ASSERT_EQ(held(client.ep)->post_rdma_write(data, 1, {base + 90, 64, context}, 0),
            Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kRemoteAccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(server.buffer[static_cast<std::size_t>(i)], 0);
}

TEST_P(EpTest, EachFaultOfASegmentHasItsCode) {
  connect();
  std::shared_ptr<Pz> other;
  std::shared_ptr<Lmr> foreign, readable;
  Buffer memory(4096), more(4096);
  ASSERT_EQ(Pz::create(*client.ia, other), Result::kSuccess);
  ASSERT_EQ(Lmr::create(*client.ia, other, {memory.data(), 4096, kAllPrivileges, false}, foreign),
            Result::kSuccess);
  ASSERT_EQ(Lmr::create(*client.ia, client.pz, {more.data(), 4096, kLocalRead, false}, readable),
            Result::kSuccess);
  const LmrTriplet outside[] = {client.at(client.buffer.size() - 10, 11)};
  EXPECT_EQ(held(client.ep)->post_send(outside, 0, 0), Result::kInvalidParameter);
  const LmrTriplet unknown[] = {{client.at(0, 1).address, 1, 0xdead}};
  EXPECT_EQ(held(client.ep)->post_send(unknown, 0, 0), Result::kPrivilegesViolation);
  const LmrTriplet zone[] = {{foreign->base(), 1, foreign->context()}};
  EXPECT_EQ(held(client.ep)->post_send(zone, 0, 0), Result::kProtectionViolation);
  const LmrTriplet privilege[] = {{readable->base(), 1, readable->context()}};
  EXPECT_EQ(held(client.ep)->post_recv(privilege, 0, 0), Result::kPrivilegesViolation);
  const LmrTriplet into[] = {server.at(0, 8)};
  ASSERT_EQ(held(server.ep)->post_recv(into, 0, 0), Result::kSuccess);
  EXPECT_EQ(held(client.ep)->post_send(privilege, 7, 0), Result::kSuccess);
  // Its memory ends with this test.
  EXPECT_EQ(DatSide::next(*client.request).cookie, 7U);
}

TEST_P(EpTest, SuppressedCompletionsAreNotToldUnlessTheyFail) {
  connect();
  ASSERT_EQ(held(server.ep)->post_recv({}, 1, 0), Result::kSuccess);
  ASSERT_EQ(held(server.ep)->post_recv({}, 2, 0), Result::kSuccess);
  ASSERT_EQ(held(client.ep)->post_send({}, 1, kSuppress), Result::kSuccess);
  ASSERT_EQ(held(client.ep)->post_send({}, 2, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).cookie, 2U);
}

TEST_P(EpTest, SolicitedWaitLetsTheSenderDecideWhetherTheWaiterIsWoken) {
  server.attr.recv_flags = kSolicitedWait;
  connect();
  const LmrTriplet into[] = {server.at(0, 8)}, from[] = {client.at(0, 8)};
  for (std::uint64_t i = 1; i <= 3; ++i)
    ASSERT_EQ(held(server.ep)->post_recv(into, i, 0), Result::kSuccess);
  Event event, other;
  int more = 0;
  auto result = Result::kSuccess;
  std::thread waiter([&] { result = server.recv->wait(1'000'000, 1, event, more); });
  while (dequeue(*server.recv, other) != Result::kInvalidState) std::this_thread::yield();
  ASSERT_EQ(held(client.ep)->post_send(from, 1, 0), Result::kSuccess);
  waiter.join();
  EXPECT_EQ(result, Result::kTimeoutExpired);
  EXPECT_EQ(more, 1);
  ASSERT_EQ(held(client.ep)->post_send(from, 2, kSolicitedWait), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*server.recv).cookie, 1U);
  EXPECT_EQ(DatSide::next(*server.recv).cookie, 2U);
}

TEST_P(EpTest, AnAbruptDisconnectFlushesWhatIsPosted) {
  connect();
  ASSERT_EQ(held(server.ep)->post_recv({}, 5, 0), Result::kSuccess);
  ASSERT_EQ(client.ep->disconnect(true), Result::kSuccess);
  const auto flushed = DatSide::next(*server.recv);
  EXPECT_EQ(flushed.cookie, 5U);
  EXPECT_EQ(flushed.status, DtoStatus::kFlushed);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kDisconnected);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kDisconnected);
  ASSERT_EQ(held(client.ep)->post_send({}, 6, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kFlushed);
}

TEST_P(EpTest, AMessageLongerThanItsReceiveIsALocalLengthErrorAndBreaksTheConnection) {
  connect();
  const LmrTriplet into[] = {server.at(0, 4)};
  const LmrTriplet from[] = {client.at(0, 5)};
  ASSERT_EQ(held(server.ep)->post_recv(into, 1, 0), Result::kSuccess);
  ASSERT_EQ(held(client.ep)->post_send(from, 1, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*server.recv).status, DtoStatus::kLocalLength);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
}

TEST_P(EpTest, AnRspTakesOneRequestForItsEp) {
  server.ep = server.make_ep();
  client.ep = client.make_ep();
  std::shared_ptr<ServicePoint> rsp;
  ASSERT_EQ(ServicePoint::create_rsp(*server.ia, 3000, server.requests, server.ep, rsp),
            Result::kSuccess);
  EXPECT_EQ(state_of(server.ep), EpState::kReserved);
  EXPECT_EQ(server.ep->free(), Result::kInvalidState);
  ASSERT_EQ(client.ep->connect("127.0.0.1", 0, 3000, kPatience, {}), Result::kSuccess);
  const auto request = DatSide::next(*server.requests);
  cr = std::static_pointer_cast<Cr>(static_cast<Object*>(request.cr)->shared_from_this());
  EXPECT_EQ(state_of(server.ep), EpState::kPassivePending);
  ASSERT_EQ(cr->accept(nullptr, {}), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kEstablished);
  const auto second = client.make_ep();
  ASSERT_EQ(second->connect("127.0.0.1", 0, 3000, kPatience, {}), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kNonPeerRejected);
}

// Each IA has a mutex of its own.
TEST_P(EpTest, NothingIsMadeOfWhatAnotherIaHas) {
  const auto& own = client;
  std::shared_ptr<Srq> foreign;
  ASSERT_EQ(Srq::create(*server.ia, server.pz, {.max_recv_dtos = 4}, foreign), Result::kSuccess);
  std::shared_ptr<Ep> ep;
  for (const auto& parts : {Ep::Parts{server.pz, own.recv, own.request, own.connect, nullptr},
                            Ep::Parts{own.pz, server.recv, own.request, own.connect, nullptr},
                            Ep::Parts{own.pz, own.recv, server.request, own.connect, nullptr},
                            Ep::Parts{own.pz, own.recv, own.request, server.connect, nullptr},
                            Ep::Parts{own.pz, own.recv, own.request, own.connect, foreign}})
    EXPECT_EQ(Ep::create(*own.ia, parts, own.attr, ep), Result::kInvalidHandle);
  ep = client.make_ep();
  EXPECT_EQ(ep->modify({nullptr, server.recv, nullptr, nullptr, nullptr}, nullptr),
            Result::kInvalidHandle);
  std::shared_ptr<Lmr> lmr;
  EXPECT_EQ(Lmr::create(*own.ia, server.pz, {client.buffer.data(), 64, kLocalRead, false}, lmr),
            Result::kInvalidHandle);
  std::shared_ptr<Rmr> rmr;
  EXPECT_EQ(Rmr::create(*own.ia, server.pz, rmr), Result::kInvalidHandle);
  EXPECT_EQ(Srq::create(*own.ia, server.pz, {.max_recv_dtos = 4}, foreign), Result::kInvalidHandle);
  EXPECT_EQ(ServicePoint::create_psp(*own.ia, 3000, server.requests, psp), Result::kInvalidHandle);
  EXPECT_EQ(ServicePoint::create_rsp(*server.ia, 3000, server.requests, ep, psp),
            Result::kInvalidHandle);
  std::shared_ptr<Cno> cno;
  ASSERT_EQ(Cno::create(*server.ia, {}, cno), Result::kSuccess);
  std::shared_ptr<Evd> evd;
  EXPECT_EQ(Evd::create(*own.ia, 4, cno, kStreamDto, evd), Result::kInvalidHandle);
  EXPECT_EQ(client.recv->modify_cno(cno), Result::kInvalidHandle);
}

TEST_P(EpTest, WhatIsInUseCannotBeFreed) {
  connect();
  EXPECT_EQ(client.pz->free(), Result::kInvalidState);
  EXPECT_EQ(client.recv->free(), Result::kInvalidState);
  EXPECT_EQ(client.ia->close(false), Result::kInvalidState);
  EXPECT_EQ(client.ep->free(), Result::kSuccess);
  EXPECT_EQ(client.ep->free(), Result::kInvalidHandle);
  EXPECT_EQ(client.recv->free(), Result::kSuccess);
}

}  // namespace
}  // namespace stp::test
