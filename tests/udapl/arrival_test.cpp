// SPDX-License-Identifier: BSD-3-Clause
// Buffers of an SRQ are assigned in the order in which messages arrive. Also tests messages that
// find no buffer.
#include <chrono>
#include <cstring>
#include <thread>

#include "stp/wire/big_endian.h"
#include "stp/wire/header.h"
#include "tests/host/test_port.h"
#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

// While `loses` is set, loses all long DATA and the RTS of some messages.
class GapPort final : public TestPort {
 public:
  std::atomic<bool> loses = false;
  // Numbers on the wire, where the request to connect and its answer are the first messages.
  std::atomic<std::uint32_t> first_lost = 0, last_lost = 0;

 private:
  void disturb(Frames& frames) override {
    if (loses) std::erase_if(frames, [this](const auto& frame) { return is_lost(frame); });
  }
  template <typename Frame>
  bool is_lost(const Frame& frame) const {
    constexpr std::size_t kEthernet = 14, kHeader = 40, kLong = 1'000;
    if (frame.size() > kLong) return true;
    const auto* const at = reinterpret_cast<const std::byte*>(frame.data()) + kEthernet;
    if (wire::load16(at) >> wire::kOpShift != static_cast<int>(wire::Op::kRequestToSend))
      return false;
    const auto message = wire::load32(at + kHeader);
    return message >= first_lost && message <= last_lost;
  }
};

struct GapLink {
  GapPort* const port = new GapPort;
  Daemon daemon{std::unique_ptr<port::Port>(port)};
  UseLink link{daemon.link()};
};

// Too long for the ring, so it has an RTS.
constexpr std::size_t kLength = 40'000;

class Arrival : public testing::Test, protected GapLink, protected DatPair {
 protected:
  Arrival() { EXPECT_EQ(Srq::create(*server.ia, server.pz, {16, 1, 0}, srq), Result::kSuccess); }
  void post(std::uint64_t cookie) {
    const LmrTriplet into[] = {server.at(cookie % 12 * kLength, kLength)};
    ASSERT_EQ(held(srq)->post(into, cookie), Result::kSuccess);
  }
  void send(std::uint64_t number) {
    const LmrTriplet from[] = {client.at(number, kLength)};
    ASSERT_EQ(held(client.ep)->post_send(from, number, 0), Result::kSuccess);
  }
  // Messages 1 to 18 have arrived; of the next ones 19, 22 and 23 are arriving.
  void lose_some() {
    server.ep = server.make_ep(srq);
    connect();
    for (std::uint64_t i = 1; i <= 18; ++i) {
      post(i);
      send(i);
      ASSERT_EQ(DatSide::next(*server.recv).cookie, i);
    }
    port->first_lost = 20 + 1;
    port->last_lost = 21 + 1;
    port->loses = true;
    for (std::uint64_t i = 19; i <= 23; ++i) send(i);
  }
  void query() { ASSERT_EQ(server.ep->recv_query(&buffers, &span), Result::kSuccess); }
  void await_buffers(int wanted) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (query(); buffers != wanted && std::chrono::steady_clock::now() < until; query())
      std::this_thread::yield();
    ASSERT_EQ(buffers, wanted);
  }

  std::shared_ptr<Srq> srq;
  int buffers = -1, span = -1;
};

// protocol: 9.33
TEST_F(Arrival, RecvQuerySaysThreeBuffersAndASpanOfFiveWhere19And22And23AreArriving) {
  lose_some();
  for (std::uint64_t i = 19; i <= 23; ++i) post(i);
  await_buffers(3);
  EXPECT_EQ(span, 5);
  Srq::Param param{};
  ASSERT_EQ(srq->query(param), Result::kSuccess);
  EXPECT_EQ(param.available, 2);
  EXPECT_EQ(param.outstanding, 5);
  EXPECT_EQ(srq->resize(4), Result::kInvalidState);  // those at the EP count as well
  EXPECT_EQ(srq->resize(5), Result::kSuccess);
}

TEST_F(Arrival, MessagesAreDeliveredInOrderThoughTheirBuffersWereNotGivenOutInIt) {
  lose_some();
  for (std::uint64_t i = 19; i <= 23; ++i) post(i);
  await_buffers(3);
  port->loses = false;
  for (std::uint64_t i = 19; i <= 23; ++i) {
    const auto got = DatSide::next(*server.recv);
    ASSERT_EQ(got.status, DtoStatus::kSuccess);
    ASSERT_EQ(std::memcmp(server.buffer.data() + got.cookie % 12 * kLength,
                          client.buffer.data() + i, kLength),
              0)
        << i;
  }
  query();
  EXPECT_EQ(buffers, 0);
  EXPECT_EQ(span, 0);
}

TEST_F(Arrival, ALaterMessageTakesNoBufferThatAnEarlierOneWillNeed) {
  lose_some();
  for (std::uint64_t i = 19; i <= 21; ++i) post(i);
  await_buffers(1);
  EXPECT_EQ(span, 1);
  post(22);
  await_buffers(2);
  EXPECT_EQ(span, 4);
}

TEST_F(Arrival, WhatWasGivenABufferAheadIsFlushedInItsTurnWhenTheConnectionEnds) {
  lose_some();
  for (std::uint64_t i = 19; i <= 23; ++i) post(i);
  await_buffers(3);
  port->cut = true;  // while it loses, so what arrives stays incomplete
  ASSERT_EQ(server.ep->disconnect(true), Result::kSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(DatSide::next(*server.recv).status, DtoStatus::kFlushed);
  Srq::Param param{};
  ASSERT_EQ(srq->query(param), Result::kSuccess);
  EXPECT_EQ(param.outstanding, 2);
}

// Messages that are arriving keep their buffers, so the EP has more than it may have.
TEST_F(Arrival, MoreBuffersThanTheSoftWatermarkAreToldOnce) {
  lose_some();
  ASSERT_EQ(server.ep->set_watermarks(2, -1), Result::kSuccess);
  for (std::uint64_t i = 19; i <= 23; ++i) post(i);
  await_buffers(3);
  port->loses = false;
  for (std::uint64_t i = 19; i <= 23; ++i) DatSide::next(*server.recv);
  const auto told = DatSide::next(*server.async);
  EXPECT_EQ(told.reason, AsyncReason::kSoftHighWatermark);
  Event event;
  EXPECT_EQ(dequeue(*server.async, event), Result::kQueueEmpty);
}

TEST_F(Arrival, MoreBuffersThanTheHardWatermarkBreakTheConnection) {
  lose_some();
  for (std::uint64_t i = 19; i <= 23; ++i) post(i);
  await_buffers(3);
  ASSERT_EQ(server.ep->set_watermarks(-1, 2), Result::kSuccess);
  EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
  port->loses = false;
  EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
}

}  // namespace
}  // namespace stp::test
