// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_resize, dat_srq_post_recv, dat_ep_create_with_srq and dat_ep_recv_query, with a case for
// each promise of their pages.
#include <cstring>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class SrqTest : public Dat {
 protected:
  SrqTest() {
    EXPECT_EQ(Srq::create(*server.ia, server.pz, {8, 4, 0}, srq), Result::kSuccess);
    server.ep = server.make_ep(srq);
  }
  void post(std::uint64_t cookie, std::size_t length = 16) {
    const LmrTriplet into[] = {server.at(cookie * 64, length)};
    ASSERT_EQ(held(srq)->post(into, cookie), Result::kSuccess);
  }
  void send(std::size_t length = 16) {
    const LmrTriplet from[] = {client.at(0, length)};
    ASSERT_EQ(held(client.ep)->post_send(from, 0, kSuppress), Result::kSuccess);
  }
  Srq::Param query() {
    Srq::Param param{};
    EXPECT_EQ(srq->query(param), Result::kSuccess);
    return param;
  }
  std::shared_ptr<Srq> srq;
};
STP_BOTH_WAYS(SrqTest);

TEST_P(SrqTest, ResizeCountsBuffersOfWhichCompletionsHaveNotBeenReaped) {
  connect();
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  send();
  while (query().available != 3) {
  }
  EXPECT_EQ(query().outstanding, 4);
  EXPECT_EQ(srq->resize(3), Result::kInvalidState);
  EXPECT_EQ(query().attr.max_recv_dtos, 8);
  DatSide::next(*server.recv);
  EXPECT_EQ(query().outstanding, 3);
  EXPECT_EQ(srq->resize(3), Result::kSuccess);
  EXPECT_EQ(query().attr.max_recv_dtos, 3);
}

TEST_P(SrqTest, ResizeBelowTheLowWatermarkIsAnInvalidState) {
  ASSERT_EQ(srq->set_low_watermark(5), Result::kSuccess);
  EXPECT_EQ(srq->resize(4), Result::kInvalidState);
  EXPECT_EQ(srq->resize(5), Result::kSuccess);
}

TEST_P(SrqTest, ResizeToWhatIsNoLengthIsAnInvalidParameter) {
  EXPECT_EQ(srq->resize(0), Result::kInvalidParameter);
  EXPECT_EQ(srq->resize(-1), Result::kInvalidParameter);
  EXPECT_EQ(srq->resize(Srq::kMaxReceives + 1), Result::kInsufficientResources);
}

TEST_P(SrqTest, ResizingUnderTrafficLosesNoMessage) {
  connect();
  std::uint64_t posted = 0, sent = 0;
  for (; posted < 4; ++posted) post(posted % 8);
  for (int round = 0; round < 100; ++round) {
    for (; sent < posted; ++sent) send();
    ASSERT_EQ(srq->resize(round % 2 == 0 ? 4 : 9), Result::kSuccess);
    for (std::uint64_t i = 0; i < 4; ++i)
      ASSERT_EQ(DatSide::next(*server.recv).status, DtoStatus::kSuccess);
    for (int i = 0; i < 4; ++i) post(posted++ % 8);
  }
}

TEST_P(SrqTest, PostRecvFillsSegmentsInTheirOrderAndReturnsTheCookie) {
  connect();
  const LmrTriplet into[] = {server.at(100, 10), server.at(200, 10)};
  std::memset(server.buffer.data(), 0, 1024);
  ASSERT_EQ(held(srq)->post(into, 42), Result::kSuccess);
  send(15);
  const auto event = DatSide::next(*server.recv);
  EXPECT_EQ(event.cookie, 42U);
  EXPECT_EQ(event.length, 15U);
  EXPECT_EQ(std::memcmp(server.buffer.data() + 100, client.buffer.data(), 10), 0);
  EXPECT_EQ(std::memcmp(server.buffer.data() + 200, client.buffer.data() + 10, 5), 0);
  EXPECT_EQ(server.buffer[205], 0);
}

TEST_P(SrqTest, PostRecvOfNoSegmentsTakesAMessageOfNoBytes) {
  connect();
  ASSERT_EQ(held(srq)->post({}, 1), Result::kSuccess);
  send(0);
  EXPECT_EQ(DatSide::next(*server.recv).length, 0U);
}

TEST_P(SrqTest, PostRecvBeyondTheQueueIsInsufficientResources) {
  for (std::uint64_t i = 0; i < 8; ++i) post(i);
  EXPECT_EQ(held(srq)->post({}, 9), Result::kInsufficientResources);
}

TEST_P(SrqTest, PostRecvChecksEachSegment) {
  const LmrTriplet outside[] = {server.at(server.buffer.size(), 1)};
  EXPECT_EQ(held(srq)->post(outside, 0), Result::kInvalidParameter);
  const LmrTriplet unknown[] = {{0, 1, 0xdead}};
  EXPECT_EQ(held(srq)->post(unknown, 0), Result::kPrivilegesViolation);
  std::shared_ptr<Pz> other;
  std::shared_ptr<Lmr> foreign;
  Buffer memory(4096);
  ASSERT_EQ(Pz::create(*server.ia, other), Result::kSuccess);
  ASSERT_EQ(Lmr::create(*server.ia, other, {memory.data(), 4096, kAllPrivileges, false}, foreign),
            Result::kSuccess);
  const LmrTriplet zone[] = {{foreign->base(), 1, foreign->context()}};
  EXPECT_EQ(held(srq)->post(zone, 0), Result::kProtectionViolation);
  EXPECT_EQ(query().outstanding, 0);
}

TEST_P(SrqTest, ReceiveBuffersCannotBePostedToAnEpWithSrq) {
  EXPECT_EQ(held(server.ep)->post_recv({}, 0, 0), Result::kInvalidState);
}

TEST_P(SrqTest, TheZoneOfTheSrqMayDifferFromThatOfTheEp) {
  std::shared_ptr<Pz> other;
  std::shared_ptr<Srq> theirs;
  ASSERT_EQ(Pz::create(*server.ia, other), Result::kSuccess);
  ASSERT_EQ(Srq::create(*server.ia, other, {8, 4, 0}, theirs), Result::kSuccess);
  EXPECT_NE(server.make_ep(theirs), nullptr);
}

TEST_P(SrqTest, ResettingTheEpLeavesItsSrq) {
  connect();
  ASSERT_EQ(server.ep->disconnect(true), Result::kSuccess);
  ASSERT_EQ(DatSide::next(*server.connect).number, EventNumber::kDisconnected);
  ASSERT_EQ(server.ep->reset(), Result::kSuccess);
  Ep::Param param{};
  ASSERT_EQ(server.ep->query(param), Result::kSuccess);
  EXPECT_EQ(param.state, EpState::kUnconnected);
  EXPECT_EQ(param.parts.srq, srq);
  EXPECT_EQ(srq->free(), Result::kInvalidState);
}

TEST_P(SrqTest, CompletionFlagsThatDoNotMatchOnOneEvdAreAnInvalidParameter) {
  for (const auto flag : {kUnsignalled, kSolicitedWait, kEvdThreshold}) {
    auto attr = server.attr;
    attr.recv_flags = flag;
    std::shared_ptr<Ep> made;
    EXPECT_EQ(Ep::create(*server.ia, {server.pz, server.recv, server.request, server.connect, srq},
                         attr, made),
              Result::kInvalidParameter);
    EXPECT_EQ(made, nullptr);
  }
}

TEST_P(SrqTest, MoreThanTheIaHasIsAnInvalidParameter) {
  auto attr = server.attr;
  attr.max_rdma_read_out = kMaxReads + 1;
  std::shared_ptr<Ep> made;
  EXPECT_EQ(Ep::create(*server.ia, {server.pz, nullptr, nullptr, nullptr, srq}, attr, made),
            Result::kInvalidParameter);
}

TEST_P(SrqTest, FewerBuffersThanTheLowWatermarkAreToldOnce) {
  connect();
  for (std::uint64_t i = 0; i < 4; ++i) post(i);
  ASSERT_EQ(srq->set_low_watermark(3), Result::kSuccess);
  send();
  send();
  DatSide::next(*server.recv);
  DatSide::next(*server.recv);
  const auto told = DatSide::next(*server.async);
  EXPECT_EQ(told.reason, AsyncReason::kLowWatermark);
  Event event;
  EXPECT_EQ(dequeue(*server.async, event), Result::kQueueEmpty);
}

TEST_P(SrqTest, RecvQueryCountsABufferFromPostingWhereThereIsNoSrq) {
  const auto ep = client.make_ep();
  int buffers = -1, span = -1;
  ASSERT_EQ(held(ep)->post_recv({}, 0, 0), Result::kSuccess);
  ASSERT_EQ(held(ep)->post_recv({}, 0, 0), Result::kSuccess);
  ASSERT_EQ(ep->recv_query(&buffers, &span), Result::kSuccess);
  EXPECT_EQ(buffers, 2);
  EXPECT_EQ(span, 2);
  EXPECT_EQ(ep->recv_query(nullptr, nullptr), Result::kSuccess);
  ASSERT_EQ(ep->free(), Result::kSuccess);
  EXPECT_EQ(ep->recv_query(&buffers, &span), Result::kInvalidHandle);
}

TEST_P(SrqTest, RecvQueryCountsNoBufferThatIsStillInTheSrq) {
  connect();
  post(1);
  int buffers = -1, span = -1;
  ASSERT_EQ(server.ep->recv_query(&buffers, &span), Result::kSuccess);
  EXPECT_EQ(buffers, 0);
  EXPECT_EQ(span, 0);
}

}  // namespace
}  // namespace stp::test
