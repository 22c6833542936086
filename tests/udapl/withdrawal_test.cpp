// SPDX-License-Identifier: BSD-3-Clause
// An LMR is freed while operations are posted in it.
#include <cstring>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class WithdrawalTest : public Dat {
 protected:
  WithdrawalTest() {
    EXPECT_EQ(Lmr::create(*server.ia, server.pz,
                          {memory.data(), memory.size(), kAllPrivileges, false}, lmr),
              Result::kSuccess);
  }
  [[nodiscard]] LmrTriplet part(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory.data() + offset), length, lmr->context()};
  }
  // The server has posted a receive. Expects that a message of `length` bytes does not get it.
  void expect_refused(std::size_t length) {
    std::memset(memory.data(), 0x55, memory.size());
    ASSERT_EQ(lmr->free(), Result::kSuccess);
    const LmrTriplet from[] = {client.at(0, length)};
    ASSERT_EQ(held(client.ep)->post_send(from, 9, 0), Result::kSuccess);
    const auto told = DatSide::next(*server.recv);
    EXPECT_EQ(told.cookie, 1U);
    EXPECT_EQ(told.status, DtoStatus::kLocalProtection);
    EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
    EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
    for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(memory[i], 0x55);
  }

  Buffer memory{1 << 16};
  std::shared_ptr<Lmr> lmr;
};
STP_BOTH_WAYS(WithdrawalTest);

TEST_P(WithdrawalTest, AReceiveThatIsPostedHindersNothingAndGetsNoMessage) {
  for (const auto length : {std::size_t{100}, std::size_t{20'000}}) {
    if (!lmr) {
      ASSERT_EQ(Lmr::create(*server.ia, server.pz,
                            {memory.data(), memory.size(), kAllPrivileges, false}, lmr),
                Result::kSuccess);
    }
    server.ep = client.ep = nullptr;
    connect();
    const LmrTriplet into[] = {part(0, 30'000)};
    ASSERT_EQ(held(server.ep)->post_recv(into, 1, 0), Result::kSuccess);
    expect_refused(length);
    lmr = nullptr;
  }
}

TEST_P(WithdrawalTest, AReceiveOfSeveralSegmentsGetsNoMessage) {
  connect();
  const LmrTriplet into[] = {part(0, 50), server.at(0, 50), part(100, 50)};
  ASSERT_EQ(held(server.ep)->post_recv(into, 1, 0), Result::kSuccess);
  expect_refused(150);
}

TEST_P(WithdrawalTest, AReceiveOfAnSrqGetsNoMessage) {
  std::shared_ptr<Srq> srq;
  ASSERT_EQ(Srq::create(*server.ia, server.pz, {4, 1, 0}, srq), Result::kSuccess);
  server.ep = server.make_ep(srq);
  connect();
  const LmrTriplet into[] = {part(0, 30'000)};
  ASSERT_EQ(held(srq)->post(into, 1), Result::kSuccess);
  expect_refused(20'000);
}

TEST_P(WithdrawalTest, ReceivesThatNoMessageTakesAreFlushedAtTheEnd) {
  connect();
  const LmrTriplet into[] = {part(0, 100)}, other[] = {server.at(0, 100)};
  ASSERT_EQ(held(server.ep)->post_recv(other, 1, 0), Result::kSuccess);
  ASSERT_EQ(held(server.ep)->post_recv(into, 2, 0), Result::kSuccess);
  ASSERT_EQ(lmr->free(), Result::kSuccess);
  EXPECT_EQ(lmr->free(), Result::kInvalidHandle);
  EXPECT_EQ(held(server.ep)->post_recv(into, 3, 0), Result::kPrivilegesViolation);
  const LmrTriplet from[] = {client.at(0, 100)};
  ASSERT_EQ(held(client.ep)->post_send(from, 9, 0), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*server.recv).status, DtoStatus::kSuccess);
  ASSERT_EQ(client.ep->disconnect(false), Result::kSuccess);
  const auto flushed = DatSide::next(*server.recv);
  EXPECT_EQ(flushed.cookie, 2U);
  EXPECT_EQ(flushed.status, DtoStatus::kFlushed);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kDisconnected);
}

TEST_P(WithdrawalTest, ASendThatIsUnderWayEndsItsConnectionAndIsFlushed) {
  connect();
  const LmrTriplet from[] = {part(0, 60'000)};
  ASSERT_EQ(held(server.ep)->post_send(from, 7, 0), Result::kSuccess);  // waits for a receive
  ASSERT_EQ(lmr->free(), Result::kSuccess);
  const auto told = DatSide::next(*server.request);
  EXPECT_EQ(told.cookie, 7U);
  EXPECT_EQ(told.status, DtoStatus::kFlushed);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
}

}  // namespace
}  // namespace stp::test
