// SPDX-License-Identifier: BSD-3-Clause
// Connection qualifiers of 64 bits, several of which map to one port.
#include "libst/udapl/core/private_data.h"

#include <cstring>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

constexpr std::uint64_t kQual = 0x0123'4567'89ab'cdef;

// Another qualifier with the same port, one for each `which`.
std::uint64_t like(std::uint64_t conn_qual, std::uint64_t which) {
  constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t inverse = kSpread;  // right in three bits; each round doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - kSpread * inverse;
  return (conn_qual * kSpread ^ which) * inverse;
}

class QualifierTest : public Dat {
 protected:
  std::shared_ptr<ServicePoint> listen(std::uint64_t conn_qual) {
    std::shared_ptr<ServicePoint> made;
    EXPECT_EQ(ServicePoint::create_psp(*server.ia, conn_qual, server.requests, made),
              Result::kSuccess);
    return made;
  }
  // Connects to `conn_qual` with the most private data, and expects the request at its service
  // point.
  void expect_reached(std::uint64_t conn_qual) {
    const std::vector<std::byte> data(kMaxPrivateData, std::byte{7});
    const auto from = client.make_ep(), to = server.make_ep();
    ASSERT_EQ(from->connect("127.0.0.1", 0, conn_qual, kPatience, data), Result::kSuccess);
    const auto request = DatSide::next(*server.requests);
    ASSERT_EQ(request.number, EventNumber::kConnectionRequest);
    EXPECT_EQ(request.conn_qual, conn_qual);
    cr = std::static_pointer_cast<Cr>(static_cast<Object*>(request.cr)->shared_from_this());
    EXPECT_EQ(cr->data().bytes, data);
    ASSERT_EQ(cr->accept(to, data), Result::kSuccess);
    const auto told = DatSide::next(*client.connect);
    EXPECT_EQ(told.number, EventNumber::kEstablished);
    EXPECT_EQ(told.private_size, data.size());
    EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kEstablished);
    Ep::Param param{};
    ASSERT_EQ(from->query(param), Result::kSuccess);
    EXPECT_EQ(param.remote_qual, conn_qual);
  }
  void expect_nobody(std::uint64_t conn_qual) {
    const auto from = client.make_ep();
    ASSERT_EQ(from->connect("127.0.0.1", 0, conn_qual, kPatience, {}), Result::kSuccess);
    // If another qualifier uses the port, the server's program must poll to reject the request.
    Event told;
    int more = 0;
    for (int look = 0; look < 2000; ++look) {
      EXPECT_EQ(server.requests->wait(0, 1, told, more), Result::kTimeoutExpired);
      if (client.connect->wait(10'000, 1, told, more) == Result::kSuccess) break;
    }
    EXPECT_EQ(told.number, EventNumber::kNonPeerRejected);
  }
};
STP_BOTH_WAYS(QualifierTest);

TEST_P(QualifierTest, Each64BitNumberIsOne) {
  for (const auto qual :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65'536}, std::uint64_t{UINT32_MAX},
        std::uint64_t{UINT32_MAX} + 1, kQual, ~std::uint64_t{0}}) {
    expect_nobody(qual);
    const auto point = listen(qual);
    expect_reached(qual);
    EXPECT_EQ(point->free(), Result::kSuccess);
  }
}

TEST_P(QualifierTest, ThoseOfOnePortAreNotConfused) {
  const auto other = like(kQual, 1), nobodys = like(kQual, 2);
  std::uint64_t const port = port_of(kQual);  // a qualifier, too
  ASSERT_EQ(port_of(other), port);
  ASSERT_EQ(port_of(nobodys), port);
  ASSERT_EQ(port_of(port), port);
  const auto first = listen(kQual), second = listen(other);
  expect_reached(kQual);
  expect_reached(other);
  expect_nobody(nobodys);
  expect_nobody(port);
  const auto third = listen(port);
  expect_reached(port);
  ASSERT_EQ(first->free(), Result::kSuccess);
  expect_nobody(kQual);
  expect_reached(other);
  expect_reached(port);
}

TEST_P(QualifierTest, OneInUseIsOneInUse) {
  const auto point = listen(kQual);
  std::shared_ptr<ServicePoint> again;
  EXPECT_EQ(ServicePoint::create_psp(*server.ia, kQual, server.requests, again),
            Result::kConnQualInUse);
  // For another IA of the link: the port has only one listener.
  EXPECT_EQ(ServicePoint::create_psp(*client.ia, like(kQual, 1), client.requests, again),
            Result::kConnQualInUse);
}

TEST_P(QualifierTest, AReservedServicePointAndAHandoffKnowTheWholeNumber) {
  const auto other = like(kQual, 1);
  server.ep = server.make_ep();
  std::shared_ptr<ServicePoint> rsp;
  ASSERT_EQ(ServicePoint::create_rsp(*server.ia, kQual, server.requests, server.ep, rsp),
            Result::kSuccess);
  const auto point = listen(other);
  client.ep = client.make_ep();
  ASSERT_EQ(client.ep->connect("127.0.0.1", 0, other, kPatience, {}), Result::kSuccess);
  const auto asked = next_request();
  ASSERT_TRUE(asked);
  EXPECT_FALSE(asked->reserved());
  ASSERT_EQ(asked->handoff(like(kQual, 2)), Result::kInvalidParameter);
  ASSERT_EQ(asked->handoff(kQual), Result::kSuccess);
  cr = next_request();
  ASSERT_TRUE(cr);
  EXPECT_EQ(cr->reserved(), server.ep);
  ASSERT_EQ(cr->accept(nullptr, {}), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kEstablished);
}

}  // namespace
}  // namespace stp::test
