// SPDX-License-Identifier: BSD-3-Clause
// Connecting, refusing, disconnecting, with private data.
#include <thread>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

class Connecting : public ManagedApi {
  void SetUp() override { listen(); }

 protected:
  static std::string private_data(stm_connection_t connection) {
    std::string data(STM_PRIVATE_DATA, '\0');
    const auto length = stm_private_data(connection, data.data(), data.size());
    EXPECT_GE(length, 0);
    data.resize(static_cast<std::size_t>(std::max(length, 0)));
    return data;
  }
  void accept(const std::string& answer = {}) {
    server.connection = server.next(STM_REQUEST).connection;
    const auto attr = server.attr(2);
    ASSERT_EQ(stm_accept(server.connection, &attr, answer.data(), answer.size()), 0);
    ASSERT_EQ(client.next(STM_CONNECTED).context, 1U);
    ASSERT_EQ(server.next(STM_CONNECTED).context, 2U);
  }
};
STP_BOTH_WAYS(Connecting);

// protocol: 9.30
TEST_P(Connecting, PrivateDataTravelsBothWaysBeforeAnybodyHasDecided) {
  std::string const question(STM_PRIVATE_DATA, 'q'), answer(700, 'a');
  connect(question.data(), question.size());
  const auto request = server.next(STM_REQUEST);
  EXPECT_EQ(request.context, 7U);
  EXPECT_EQ(private_data(request.connection), question);
  EXPECT_TRUE(client.quiet()) << "nobody has accepted";
  const auto attr = server.attr();
  ASSERT_EQ(stm_accept(request.connection, &attr, answer.data(), answer.size()), 0);
  EXPECT_EQ(client.next(STM_CONNECTED).connection, client.connection);
  EXPECT_EQ(private_data(client.connection), answer);
  EXPECT_EQ(server.next(STM_CONNECTED).connection, request.connection);
  EXPECT_EQ(stm_connect(client.connection, ":3000", -1, question.data(), question.size() + 1),
            -EINVAL);
  EXPECT_EQ(stm_connect(client.connection, ":3000", -1, nullptr, 0), -EISCONN);
}

TEST_P(Connecting, APortHas32Bits) {
  stm_listener_t high = nullptr;
  ASSERT_EQ(stm_listen(server.domain, ":4294967295", server.queue, 8, 0, &high), 0);
  const auto attr = client.attr(1);
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  EXPECT_EQ(stm_connect(client.connection, ":4294967296", -1, nullptr, 0), -EINVAL);
  EXPECT_EQ(stm_connect(client.connection, ":0", -1, nullptr, 0), -EINVAL);
  ASSERT_EQ(stm_connect(client.connection, ":4294967295", -1, nullptr, 0), 0);
  EXPECT_EQ(server.next(STM_REQUEST).context, 8U);
}

TEST_P(Connecting, ARejectionSaysWhy) {
  connect();
  const auto request = server.next(STM_REQUEST).connection;
  ASSERT_EQ(stm_reject(request, "full", 4), 0);
  EXPECT_EQ(client.next(STM_REFUSED).status, -ECONNREFUSED);
  EXPECT_EQ(private_data(client.connection), "full");
  EXPECT_EQ(stm_connection_close(request), -EBADF) << "rejecting closes it";
  EXPECT_EQ(stm_connection_close(client.connection), 0);
}

TEST_P(Connecting, NobodyListensThere) {
  const auto attr = client.attr(5);
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  ASSERT_EQ(stm_connect(client.connection, ":3999", -1, nullptr, 0), 0);
  const auto failed = client.next(STM_FAILED);
  EXPECT_EQ(failed.status, -ECONNREFUSED);
  EXPECT_EQ(failed.context, 5U);
}

TEST_P(Connecting, TheTimeToConnectIsTheCallers) {
  const auto attr = client.attr();
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  ASSERT_EQ(stm_connect(client.connection, ":3000", 100'000, nullptr, 0), 0);
  const auto request = server.next(STM_REQUEST).connection;  // and makes no decision
  EXPECT_EQ(client.next(STM_FAILED).status, -ETIMEDOUT);
  // A late decision is reported as late.
  const auto late = server.attr();
  const auto error = stm_accept(request, &late, nullptr, 0);
  ASSERT_EQ(error, 0);
  EXPECT_EQ(server.next(STM_FAILED).status, -ENOTCONN);
}

TEST_P(Connecting, ATimeThatIsNegativeHasAMeaningOrIsRefused) {
  const auto attr = client.attr();
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  for (const std::int64_t time : {std::int64_t{-3}, std::int64_t{-7}, INT64_MIN})
    EXPECT_EQ(stm_connect(client.connection, ":3000", time, nullptr, 0), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("timeout"), std::string::npos);
  EXPECT_EQ(stm_connect(client.connection, ":3000", STM_WHILE_ALIVE, nullptr, 0), 0);
}

TEST_P(Connecting, ARequestCanBeHandedToAnotherThread) {
  connect();
  const auto request = server.next(STM_REQUEST).connection;
  std::thread([&] {
    const auto attr = server.attr();
    EXPECT_EQ(stm_accept(request, &attr, nullptr, 0), 0);
  }).join();
  EXPECT_EQ(client.next(STM_CONNECTED).status, 0);
}

TEST_P(Connecting, OperationsMayBePostedBeforeThePeerHasAccepted) {
  Buffer from(1 << 16, 4), to(1 << 16, 0, false);
  const auto source = client.memory(from.data(), from.size());
  const auto sink = server.memory(to.data(), to.size());
  connect();
  ASSERT_EQ(stm_receive(client.connection, 10, source, from.data() + 50'000, 10), 0);
  ASSERT_EQ(stm_send(client.connection, 11, 0, 0, source, from.data(), 40'000), 0);
  accept();
  ASSERT_EQ(stm_receive(server.connection, 12, sink, to.data(), to.size()), 0);
  EXPECT_EQ(server.completion(12).message, 1U);
  ASSERT_EQ(stm_send(server.connection, 13, 0, 0, sink, to.data(), 10), 0);
  EXPECT_EQ(client.completion(10).status, 0);
}

TEST_P(Connecting, AGracefulEndWaitsForWhatWasPosted) {
  Buffer from(1 << 20, 4), to(1 << 20, 0, false);
  const auto source = client.memory(from.data(), from.size());
  const auto sink = server.memory(to.data(), to.size());
  connect();
  accept();
  ASSERT_EQ(stm_receive(client.connection, 9, source, from.data(), 1), 0);
  for (std::uint64_t i = 0; i < 20; ++i)
    ASSERT_EQ(
        stm_send(client.connection, 10 + i, 0, 0, source, from.data(), i % 2 == 0 ? 9 : 50'000), 0);
  ASSERT_EQ(stm_disconnect(client.connection, STM_GRACEFUL), 0);
  EXPECT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data(), 1), -ESHUTDOWN);
  for (std::uint64_t i = 0; i < 20; ++i)
    ASSERT_EQ(stm_receive(server.connection, 40 + i, sink, to.data() + i * 50'000, 50'000), 0);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(server.completion(40 + i).status, 0);
    EXPECT_EQ(client.completion(10 + i).status, 0);
  }
  EXPECT_EQ(client.completion(9).status, -ECANCELED);
  EXPECT_EQ(client.next(STM_DISCONNECTED).status, 0);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
}

TEST_P(Connecting, AnAbruptEndFlushesEverythingOnce) {
  Buffer mine(1 << 20);
  const auto memory = client.memory(mine.data(), mine.size());
  connect();
  accept();
  constexpr std::uint64_t kEach = 20;
  for (std::uint64_t i = 0; i < kEach; ++i) {
    ASSERT_EQ(stm_receive(client.connection, i, memory, mine.data(), 100), 0);
    ASSERT_EQ(stm_send(client.connection, 100 + i, 0, 0, memory, mine.data(), 90'000), 0);
    ASSERT_EQ(stm_read(client.connection, 200 + i, 0, memory, mine.data(), 10), 0);
  }
  ASSERT_EQ(stm_disconnect(client.connection, STM_ABRUPT), 0);
  for (std::uint64_t i = 0; i < kEach; ++i)
    for (std::uint64_t const kind : {0, 100, 200})
      EXPECT_EQ(client.completion(kind + i).status, -ECANCELED);
  EXPECT_EQ(client.next(STM_DISCONNECTED).status, 0);
  EXPECT_TRUE(client.quiet());
  EXPECT_EQ(stm_memory_release(memory), 0) << "nothing holds it";
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
}

TEST_P(Connecting, APeerThatDisappearsFlushesWhatIsOutstanding) {
  Buffer mine(1 << 16);
  const auto memory = client.memory(mine.data(), mine.size());
  connect();
  accept();
  ASSERT_EQ(stm_receive(client.connection, 1, memory, mine.data(), 100), 0);
  ASSERT_EQ(stm_send(client.connection, 2, 0, 0, memory, mine.data(), 60'000), 0);
  server.close();
  EXPECT_EQ(client.completion(1).status, -ENOTCONN);
  EXPECT_EQ(client.completion(2).status, -ENOTCONN);
  client.next(STM_DISCONNECTED);
  EXPECT_LT(stm_send(client.connection, 3, 0, 0, memory, mine.data(), 1), 0);
}

TEST_P(Connecting, AListenerHasManyConnectionsAndItsPortIsFreeAfterwards) {
  constexpr unsigned kConnections = 30;
  std::vector<stm_connection_t> clients;
  for (unsigned i = 0; i < kConnections; ++i) {
    connect();
    clients.push_back(client.connection);
  }
  for (unsigned i = 0; i < kConnections; ++i) {
    const auto attr = server.attr();
    ASSERT_EQ(stm_accept(server.next(STM_REQUEST).connection, &attr, nullptr, 0), 0);
  }
  for (unsigned i = 0; i < kConnections; ++i) client.next(STM_CONNECTED);
  stm_listener_t second = nullptr;
  EXPECT_EQ(stm_listen(server.domain, ":3000", server.queue, 7, 0, &second), -EADDRINUSE);
  ASSERT_EQ(stm_listener_close(listener), 0);
  ASSERT_EQ(stm_listen(server.domain, ":3000", server.queue, 7, 0, &second), 0);
  connect();
  EXPECT_NE(server.next(STM_REQUEST).connection, nullptr);
  for (const auto connection : clients) EXPECT_EQ(stm_connection_close(connection), 0);
}

TEST_P(Connecting, HandlesOfAClosedDomainAreNone) {
  connect();
  accept();
  const auto queue = client.queue;
  client.close();
  stm_event_t event;
  EXPECT_EQ(stm_queue_poll(queue, &event, 1), -EBADF);
  EXPECT_EQ(stm_connection_close(client.connection), -EBADF);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
}

}  // namespace
}  // namespace stp::test
