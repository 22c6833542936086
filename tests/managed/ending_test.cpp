// SPDX-License-Identifier: BSD-3-Clause
// How a connection ends, and its end while frames still read its memory, or with messages that are
// not received yet.
#include <atomic>
#include <chrono>
#include <thread>

#include "libst/managed/life.h"
#include "tests/managed/rough_link.h"

namespace stp::test {
namespace {

class Ending : public ManagedApi {
 protected:
  static constexpr std::size_t kShort = 100;
  // Sends messages, waits until they have arrived, and disconnects.
  void send_and_leave(std::uint64_t count) {
    client.await_eager();
    Buffer from(1 << 16, 6);
    const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
    for (std::uint64_t i = 0; i < count; ++i)
      ASSERT_EQ(stm_send(client.connection, i, 0, static_cast<std::uint32_t>(i), source,
                         from.data() + i, kShort),
                0);
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(client.completion(i).status, 0);
    ASSERT_EQ(stm_disconnect(client.connection, STM_GRACEFUL), 0);
    ASSERT_EQ(client.next(STM_DISCONNECTED).status, 0);
  }
};
STP_BOTH_WAYS(Ending);

TEST_P(Ending, MessagesThatHaveArrivedAreReceivedAfterTheirSenderHasLeft) {
  constexpr std::uint64_t kMessages = 5;
  Buffer from(1 << 16, 6), to(1 << 16, 0, false);
  const auto sink = server.memory(to.data(), to.size());
  send_and_leave(kMessages);
  EXPECT_TRUE(server.quiet()) << "the end is told after the last message";
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(stm_receive(server.connection, 50 + i, sink, to.data(), to.size()), 0);
    const auto got = server.completion(50 + i);
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(got.tag, i);
    EXPECT_EQ(std::memcmp(to.data(), from.data() + i, kShort), 0);
  }
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
  EXPECT_LT(stm_receive(server.connection, 60, sink, to.data(), to.size()), 0);
  EXPECT_EQ(stm_memory_release(sink), 0);
}

TEST_P(Ending, NobodyHasToReceiveWhatIsLeft) {
  send_and_leave(2);
  EXPECT_TRUE(server.quiet());
  ASSERT_EQ(stm_disconnect(server.connection, STM_GRACEFUL), 0);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
  EXPECT_EQ(stm_connection_close(server.connection), 0);
}

// The acknowledgement would be asked for a millisecond later.
TEST_P(Ending, AQuietAnswerThatThePeerHasReadDoesNotFail) {
  Buffer from(1 << 16, 6), to(1 << 16, 0, false);
  const auto source = server.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = client.memory(to.data(), to.size());
  server.await_eager();
  ASSERT_EQ(stm_receive(client.connection, 50, sink, to.data(), to.size()), 0);
  ASSERT_EQ(stm_send(server.connection, 1, STM_QUIET, 7, source, from.data(), kShort), 0);
  ASSERT_EQ(client.completion(50).status, 0);
  ASSERT_EQ(stm_disconnect(client.connection, STM_GRACEFUL), 0);
  ASSERT_EQ(client.next(STM_DISCONNECTED).status, 0);
  ASSERT_EQ(server.next(STM_DISCONNECTED).status, 0);
  for (const auto& event : server.seen) EXPECT_NE(event.kind, unsigned{STM_SEND}) << event.status;
}

TEST_P(Ending, ALongMessageAndTheShortOneBehindItOutliveTheirSender) {
  Buffer from(1 << 20, 6), to(1 << 20, 0, false);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  client.await_eager();
  ASSERT_EQ(stm_receive(server.connection, 50, sink, to.data(), to.size()), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 1, source, from.data(), from.size()), 0);
  ASSERT_EQ(stm_send(client.connection, 2, 0, 2, source, from.data(), kShort), 0);
  EXPECT_EQ(client.completion(1).status, 0);
  EXPECT_EQ(client.completion(2).status, 0);
  client.close();
  const auto first = server.completion(50);
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.tag, 1U);
  EXPECT_EQ(std::memcmp(to.data(), from.data(), from.size()), 0);
  EXPECT_TRUE(server.quiet());
  ASSERT_EQ(stm_receive(server.connection, 51, sink, to.data(), to.size()), 0);
  EXPECT_EQ(server.completion(51).tag, 2U);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
}

TEST_P(Ending, APoolGetsWhatIsLeftAsWell) {
  stm_pool_t pool = nullptr;
  ASSERT_EQ(stm_pool_create(server.domain, 8, &pool), 0);
  Buffer to(1 << 16, 0, false);
  const auto sink = server.memory(to.data(), to.size());
  connect();
  auto attr = server.attr(2);
  attr.pool = pool;
  ASSERT_EQ(stm_accept(server.next(STM_REQUEST).connection, &attr, nullptr, 0), 0);
  client.next(STM_CONNECTED);
  server.next(STM_CONNECTED);
  send_and_leave(2);
  EXPECT_TRUE(server.quiet());
  ASSERT_EQ(stm_pool_post(pool, 50, sink, to.data(), kShort), 0);
  EXPECT_EQ(server.completion(50).status, 0);
  ASSERT_EQ(stm_pool_post(pool, 51, sink, to.data(), kShort), 0);
  EXPECT_EQ(server.completion(51).status, 0);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
  EXPECT_EQ(stm_pool_destroy(pool, nullptr, nullptr), 0) << "the connection has let go of it";
}

TEST_P(Ending, AReceiveWhoseMessageHasArrivedGetsItAlthoughThisSideDisconnects) {
  client.await_eager();
  Buffer from(1 << 16, 6), to(1 << 16, 0, false);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  for (std::uint64_t context : {50, 51})
    ASSERT_EQ(stm_receive(server.connection, context, sink, to.data(), kShort), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 7, source, from.data(), kShort), 0);
  ASSERT_EQ(client.completion(1).status, 0) << "it has been told so";
  ASSERT_EQ(stm_disconnect(server.connection, STM_ABRUPT), 0);
  const auto got = server.completion(50);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.tag, 7U);
  EXPECT_EQ(std::memcmp(to.data(), from.data(), kShort), 0);
  EXPECT_EQ(server.completion(51).status, -ECANCELED);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
}

// A message in transfer whose frames are lost, while the link still reads their memory.
class FramesThatStay : public testing::Test {
 protected:
  static constexpr std::uint64_t kSend = 1;

  void SetUp() override {
    sides.establish();
    source = sides.client.memory(from.data(), from.size(), STM_LOCAL_READ);
    const auto sink = sides.server.memory(to.data(), to.size());
    link.port->keeps_frames = true;
    link.port->loses_long_frames = true;
    ASSERT_EQ(stm_receive(sides.server.connection, 5, sink, to.data(), to.size()), 0);
    ASSERT_EQ(stm_send(sides.client.connection, kSend, 0, 0, source, from.data(), from.size()), 0);
    while (link.port->lost == 0) std::this_thread::yield();
  }
  void TearDown() override { link.port->keeps_frames = false; }

  RoughLink link;
  Buffer from{1 << 16, 1}, to{1 << 16};
  TwoSides sides;
  stm_memory_t source = nullptr;
};

TEST_F(FramesThatStay, HoldTheirOperationUntilTheyAreGone) {
  auto& client = sides.client;
  ASSERT_EQ(stm_disconnect(client.connection, STM_ABRUPT), 0);
  EXPECT_TRUE(client.quiet());
  EXPECT_EQ(stm_memory_release(source), -EBUSY);
  EXPECT_EQ(stm_send(client.connection, 2, 0, 0, source, from.data(), 1), -ENOTCONN);
  link.port->keeps_frames = false;
  EXPECT_EQ(client.completion(kSend).status, -ECANCELED);
  EXPECT_EQ(client.next(STM_DISCONNECTED).status, 0);
  EXPECT_EQ(stm_memory_release(source), 0);
}

TEST_F(FramesThatStay, HoldTheClosingOfTheirConnection) {
  auto& client = sides.client;
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    EXPECT_EQ(stm_connection_close(client.connection), 0);
    closed = true;
  });
  EXPECT_TRUE(client.quiet());
  EXPECT_FALSE(closed);
  link.port->keeps_frames = false;
  closer.join();
  stm_event_t event{};
  ASSERT_EQ(stm_queue_poll(client.queue, &event, 1), 1) << "it was told before the call was over";
  EXPECT_EQ(event.status, -ECANCELED);
  EXPECT_EQ(stm_queue_destroy(client.queue), 0);
}

// The number of a channel is reused as soon as it is closed. News of its end that its owner has not
// read by then may be read by another domain.
TEST(Channels, OfWhichOtherDomainsGetTheNumbersAreClosedInTimeAllTheSame) {
  constexpr unsigned kDomains = 4, kRounds = 60;
  const RoughLink link;
  TwoSides sides;
  sides.listen();
  std::atomic<unsigned> told = 0;
  std::atomic<bool> over = false;
  std::thread server([&] {
    const auto attr = sides.server.attr();
    for (stm_event_t event{}; !over;) {
      if (stm_queue_wait(sides.server.queue, 1, &event, 1, 10'000) != 1) continue;
      if (event.kind == STM_REQUEST) {
        EXPECT_EQ(stm_accept(event.connection, &attr, nullptr, 0), 0);
      } else if (event.kind == STM_DISCONNECTED) {
        stm_connection_close(event.connection);
      }
    }
  });
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < kDomains; ++i)
    clients.emplace_back([&] {
      Side side;
      const auto attr = side.attr();
      for (unsigned round = 0; round < kRounds; ++round) {
        ASSERT_EQ(stm_connection_create(side.domain, &attr, &side.connection), 0);
        ASSERT_EQ(stm_connect(side.connection, ":3000", -1, nullptr, 0), 0);
        ASSERT_EQ(side.next(STM_CONNECTED).status, 0);
        ASSERT_EQ(stm_disconnect(side.connection, STM_GRACEFUL), 0);
        ASSERT_EQ(side.next(STM_DISCONNECTED).kind, unsigned{STM_DISCONNECTED})
            << "round " << round;
        ASSERT_EQ(stm_connection_close(side.connection), 0);
        ++told;
      }
    });
  for (auto& client : clients) client.join();
  over = true;
  server.join();
  EXPECT_EQ(told, kDomains * kRounds);
}

}  // namespace
}  // namespace stp::test

namespace stp::managed {
namespace {

using State = ConnectionState;

void expect_end(const std::optional<End>& end, int flushed, std::uint32_t event, int status,
                bool keeps_messages = false) {
  ASSERT_TRUE(end);
  EXPECT_EQ(end->flushed, flushed);
  EXPECT_EQ(end->event, event);
  EXPECT_EQ(end->status, status);
  EXPECT_EQ(end->keeps_messages, keeps_messages);
}

TEST(EndOfConnection, FollowsFromItsChannel) {
  EXPECT_FALSE(end_of_channel(ChannelState::kConnecting, State::kConnecting, 0, 0));
  EXPECT_FALSE(end_of_channel(ChannelState::kOpen, State::kUp, 0, 0));
  expect_end(end_of_channel(ChannelState::kFailed, State::kUp, -ETIMEDOUT, 0), -ETIMEDOUT,
             STM_FAILED, -ETIMEDOUT);
  expect_end(end_of_channel(ChannelState::kPeerClosed, State::kAsking, 0, 0), -ENOTCONN, STM_FAILED,
             -ENOTCONN);
  expect_end(end_of_channel(ChannelState::kPeerClosed, State::kUp, 0, 0), -ENOTCONN,
             STM_DISCONNECTED, 0, true);
  expect_end(end_of_channel(ChannelState::kPeerClosed, State::kDraining, 0, 0), -ENOTCONN,
             STM_DISCONNECTED, 0);
  expect_end(end_of_channel(ChannelState::kClosed, State::kClosing, 0, 0), -ECANCELED,
             STM_DISCONNECTED, 0);
}

// protocol: 9.34
TEST(EndOfConnection, ThePeersReasonIsItsStatus) {
  expect_end(end_of_channel(ChannelState::kPeerClosed, State::kUp, 0, -ENOBUFS), -ENOBUFS,
             STM_FAILED, -ENOBUFS);
  EXPECT_EQ(status_of_end(to_option(Farewell::kNone)), 0);
  EXPECT_EQ(status_of_end(to_option(Farewell::kBroken)), -ECONNRESET);
  EXPECT_EQ(status_of_end(to_option(Farewell::kNoReceive)), -ENOBUFS);
}

TEST(EndOfConnection, FollowsFromADeadline) {
  expect_end(end_of_patience(State::kAsking), -ETIMEDOUT, STM_FAILED, -ETIMEDOUT);
  expect_end(end_of_patience(State::kClosing), -ECANCELED, STM_DISCONNECTED, 0);
  expect_end(end_of_patience(State::kRejecting), -ECANCELED, 0, 0);
}

TEST(EndOfConnection, OnceItHasBegunAbandoningItOnlySilencesIt) {
  managed::Ending ending;
  ending.wait(kSecond);
  EXPECT_EQ(ending.deadline(), kSecond + managed::Ending::kClosePatience);
  ending.begin({-ENOTCONN, STM_DISCONNECTED, 0, true});
  EXPECT_EQ(ending.deadline(), kNever);
  EXPECT_TRUE(ending.keeps_messages());
  EXPECT_TRUE(ending.flush_once());
  EXPECT_FALSE(ending.flush_once());
  ending.be_silent();
  EXPECT_FALSE(ending.keeps_messages());
  EXPECT_EQ(ending.end().event, 0U);
  EXPECT_EQ(ending.end().flushed, -ENOTCONN);
}

}  // namespace
}  // namespace stp::managed
