// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_modify, dat_ep_dup_connect, dat_ep_set_watermark, dat_cr_handoff.
#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class EpCalls : public Dat {
 protected:
  Ep::Param query(Ep& ep) {
    Ep::Param param{};
    EXPECT_EQ(ep.query(param), Result::kSuccess);
    return param;
  }
};
STP_BOTH_WAYS(EpCalls);

TEST_P(EpCalls, ModifyChangesPartsAndAttributesOfAnUnconnectedEp) {
  const auto ep = client.make_ep();
  const auto evd = client.evd(8, kStreamDto);
  auto attr = client.attr;
  attr.max_recv_dtos = 3;
  Ep::Parts parts;
  parts.recv = evd;
  ASSERT_EQ(ep->modify(parts, &attr), Result::kSuccess);
  const auto now = query(*ep);
  EXPECT_EQ(now.parts.recv, evd);
  EXPECT_EQ(now.parts.request, client.request);
  EXPECT_EQ(now.attr.max_recv_dtos, 3);
  EXPECT_EQ(client.recv->free(), Result::kSuccess) << "the EP uses it no more";
  EXPECT_EQ(evd->free(), Result::kInvalidState);
}

TEST_P(EpCalls, AModificationThatIsRefusedChangesNothing) {
  const auto ep = client.make_ep();
  auto attr = client.attr;
  attr.max_rdma_read_in = kMaxReads + 1;
  EXPECT_EQ(ep->modify({}, &attr), Result::kInvalidParameter);
  Ep::Parts parts;
  parts.recv = client.connect;  // an EVD that takes no completions
  attr = client.attr;
  attr.max_recv_dtos = 3;
  EXPECT_EQ(ep->modify(parts, &attr), Result::kInvalidParameter);
  EXPECT_EQ(query(*ep).parts.recv, client.recv);
  EXPECT_EQ(query(*ep).attr.max_recv_dtos, client.attr.max_recv_dtos);
}

TEST_P(EpCalls, AConnectedEpIsNotModified) {
  connect();
  EXPECT_EQ(client.ep->modify({}, nullptr), Result::kInvalidState);
}

TEST_P(EpCalls, DupConnectGoesToWhereTheOtherEpIsConnected) {
  connect();
  const auto twin = client.make_ep(), there = server.make_ep();
  ASSERT_EQ(twin->dup_connect(*client.ep, kPatience, text("me too")), Result::kSuccess);
  cr = next_request();
  ASSERT_TRUE(cr);
  EXPECT_EQ(cr->data().bytes.size(), 6U);
  ASSERT_EQ(cr->accept(there, {}), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kEstablished);
  EXPECT_EQ(query(*twin).remote_qual, 3000U);
}

TEST_P(EpCalls, DupConnectOfAnEpThatIsNotConnectedIsAnInvalidState) {
  const auto twin = client.make_ep(), other = client.make_ep();
  EXPECT_EQ(twin->dup_connect(*other, kPatience, {}), Result::kInvalidState);
  connect();
  EXPECT_EQ(client.ep->dup_connect(*client.ep, kPatience, {}), Result::kInvalidState);
}

TEST_P(EpCalls, AHandoffBringsTheRequestToAnotherServicePoint) {
  const auto elsewhere = server.evd(4, kStreamCr);
  std::shared_ptr<ServicePoint> other;
  ASSERT_EQ(ServicePoint::create_psp(*server.ia, 3000, server.requests, psp), Result::kSuccess);
  ASSERT_EQ(ServicePoint::create_psp(*server.ia, 3001, elsewhere, other), Result::kSuccess);
  client.ep = client.make_ep();
  server.ep = server.make_ep();
  ASSERT_EQ(client.ep->connect("127.0.0.1", 0, 3000, kPatience, text("hello")), Result::kSuccess);
  cr = next_request();
  ASSERT_TRUE(cr);
  EXPECT_EQ(cr->handoff(3999), Result::kInvalidParameter);
  ASSERT_EQ(cr->handoff(3001), Result::kSuccess);
  EXPECT_EQ(cr->accept(server.ep, {}), Result::kInvalidHandle);
  const auto event = DatSide::next(*elsewhere);
  EXPECT_EQ(event.conn_qual, 3001U);
  cr = std::static_pointer_cast<Cr>(static_cast<Object*>(event.cr)->shared_from_this());
  EXPECT_EQ(cr->data().bytes.size(), 5U);
  ASSERT_EQ(cr->accept(server.ep, {}), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kEstablished);
}

TEST_P(EpCalls, WatermarksAreForEpsWithAnSrq) {
  const auto ep = client.make_ep();
  EXPECT_EQ(ep->set_watermarks(1, 2), Result::kInvalidState);
}

}  // namespace
}  // namespace stp::test
