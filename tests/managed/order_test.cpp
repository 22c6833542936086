// SPDX-License-Identifier: BSD-3-Clause
// Events of different connections are reported in the order in which they happened.
#include <thread>

#include "tests/managed/judged_port.h"
#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

using Fate = JudgedPort::Fate;
using wire::Op;
using Kinds = std::vector<unsigned>;

class Order : public testing::Test {
 protected:
  void SetUp() override { sides.establish(); }
  // Begins another connection, up to the server's decision.
  stm_connection_t request() {
    sides.connect();
    return server.next(STM_REQUEST).connection;
  }
  void accept(stm_connection_t connection) {
    const auto attr = server.attr();
    ASSERT_EQ(stm_accept(connection, &attr, nullptr, 0), 0);
  }
  void receive_on(stm_connection_t connection) {
    const auto sink = server.memory(to.data(), to.size());
    ASSERT_EQ(stm_receive(connection, 1, sink, to.data(), to.size()), 0);
  }
  void send(std::size_t length) {
    const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
    ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data(), length), 0);
  }
  void await(Op op) const {
    while (!link.port->waits(op)) std::this_thread::yield();
  }
  // The next events of the server.
  Kinds told(int count) {
    Kinds kinds;
    for (; count > 0; --count) {
      stm_event_t event{};
      if (stm_queue_wait(server.queue, 1, &event, 1, 20'000'000) != 1) break;
      kinds.push_back(event.kind);
    }
    return kinds;
  }

  struct Link {
    JudgedPort* const port = new JudgedPort;
    Daemon daemon{std::unique_ptr<port::Port>(port)};
    UseLink use{daemon.link()};
  } link;
  TwoSides sides;
  Side &server = sides.server, &client = sides.client;
  Buffer from{1 << 16, 4}, to{1 << 16};
};

TEST_F(Order, AnEndIsNotToldBeforeAMessageThatCameEarlierOnAnotherConnection) {
  const auto first = client.connection;
  const auto second = request();
  accept(second);
  ASSERT_EQ(told(1), Kinds{STM_CONNECTED});
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  client.await_eager();
  receive_on(second);
  link.port->judge([](Op) { return Fate::kWaits; });
  send(100);
  await(Op::kData);
  ASSERT_EQ(stm_disconnect(first, STM_ABRUPT), 0);
  await(Op::kRequestDisconnect);
  link.port->release();
  EXPECT_EQ(told(2), (Kinds{STM_RECEIVE, STM_DISCONNECTED}));
}

TEST_F(Order, AnEndIsNotToldBeforeABeginningThatCameEarlierOnAnotherConnection) {
  const auto first = client.connection;
  const auto second = request();
  // The client learns that it was accepted, but its confirmation is delayed.
  link.port->judge([told = false, waits = false](Op op) mutable {
    told = told || op == Op::kData;
    waits = waits || (told && op == Op::kRequestStateResponse);
    return waits ? Fate::kWaits : Fate::kPasses;
  });
  accept(second);
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  await(Op::kRequestStateResponse);
  ASSERT_EQ(stm_disconnect(first, STM_ABRUPT), 0);
  await(Op::kRequestDisconnect);
  link.port->release();
  EXPECT_EQ(told(2), (Kinds{STM_CONNECTED, STM_DISCONNECTED}));
}

TEST_F(Order, ABeginningIsToldBeforeTheFirstMessageWhateverGetsLost) {
  const auto connection = request();
  link.port->judge(
      [](Op op) { return op == Op::kRequestStateResponse ? Fate::kIsLost : Fate::kPasses; });
  accept(connection);
  receive_on(connection);
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  send(from.size());
  EXPECT_EQ(told(2), (Kinds{STM_CONNECTED, STM_RECEIVE}));
  link.port->release();
  EXPECT_EQ(client.completion(1).status, 0);
}

TEST_F(Order, ABeginningIsToldBeforeTheFirstMessageInTheRing) {
  const auto connection = request();
  // Regions and what is in them are confirmed as well, but nobody waits for that here.
  link.port->judge(
      [](Op op) { return op == Op::kRequestStateResponse ? Fate::kIsLost : Fate::kPasses; });
  accept(connection);
  receive_on(connection);
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  client.await_eager();
  send(100);
  EXPECT_EQ(told(2), (Kinds{STM_CONNECTED, STM_RECEIVE}));
  link.port->release();
  EXPECT_EQ(client.completion(1).status, 0);
}

}  // namespace
}  // namespace stp::test
