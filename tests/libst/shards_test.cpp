// SPDX-License-Identifier: BSD-3-Clause
// A link of several shards, in the process and through a daemon: endpoints are spread over them,
// and reach each other.
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

constexpr int kShards = 3;

class Shards : public LibstTest {
 protected:
  Shards() : LibstTest("loop,queues=3") {}
};
STP_BOTH_WAYS(Shards);

void expect_words_both_ways(st_chandle_t one, st_chandle_t other) {
  st_header_t got;
  ASSERT_EQ(send(one, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive(other, got), 0);
  ASSERT_EQ(send(other, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive(one, got), 0);
}

TEST_P(Shards, EndpointsTakeTurnsAndTheirPortsTellWhere) {
  Endpoint server(":3000");
  ASSERT_EQ(server.error(), 0) << st_strerror(server.error());
  ASSERT_EQ(st_listen(server), 0);
  unsigned first = 0;
  for (unsigned i = 0; i < 2 * kShards; ++i) {
    Endpoint client;
    st_chandle_t connected = nullptr, accepted = nullptr;
    ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
    ASSERT_EQ(st_accept(server, &accepted), 0);
    const auto port = option(connected, ST_OPT_PORT_LOCAL);
    if (i == 0) first = port;
    EXPECT_EQ(port % kShards, (first + i) % kShards) << i;
    EXPECT_EQ(option(accepted, ST_OPT_PORT_LOCAL) % kShards, (first + kShards - 1) % kShards)
        << "the listener's shard, which was the first";
    expect_words_both_ways(connected, accepted);
  }
}

TEST_P(Shards, OneListensOnAPortForAllOfThem) {
  Endpoint first(":3000"), second(":3000");
  ASSERT_EQ(st_listen(first), 0);
  EXPECT_EQ(st_listen(second), -EADDRINUSE);
  first.reset();
  EXPECT_EQ(st_listen(second), 0);
}

TEST_P(Shards, AConnectionlessEndpointHasThePortThatItsNameSays) {
  for (unsigned port = 4000; port < 4000 + kShards; ++port) {
    Endpoint endpoint((":" + std::to_string(port)).c_str(), st_endpoint);
    ASSERT_EQ(endpoint.error(), 0) << st_strerror(endpoint.error());
    EXPECT_EQ(option(endpoint, ST_OPT_PORT_LOCAL), port);
  }
}

TEST_P(Shards, APortOfAnotherShardIsRefusedAndTheTextSaysWhy) {
  const Endpoint endpoint;
  unsigned refused = 0;
  for (unsigned port = 4000; port < 4000 + kShards; ++port) {
    const auto error = st_setopt(endpoint, ST_OPT_PORT_LOCAL, &port);
    if (error == 0) continue;
    ++refused;
    EXPECT_EQ(error, -EADDRNOTAVAIL);
    EXPECT_NE(std::string(st_strerror(error)).find("shard"), std::string::npos);
  }
  EXPECT_EQ(refused, kShards - 1U);
}

TEST_P(Shards, ALinkEndsWithItsLastEndpointAndOpensAgain) {
  for (int i = 0; i < 3; ++i) {
    Endpoint server(":3000"), client;
    ASSERT_EQ(st_listen(server), 0);
    st_chandle_t connected = nullptr;
    EXPECT_EQ(st_connect(client, ":3000", &connected), 0);
  }
}

TEST_P(Shards, ThreadsOnShardsOfTheirOwnDoNotWaitForEachOther) {
  Endpoint server(":3000");
  ASSERT_EQ(st_listen(server), 0);
  constexpr unsigned kThreads = 4, kWords = 500;
  std::vector<st_chandle_t> accepted(kThreads);
  std::vector<std::unique_ptr<Endpoint>> clients;
  std::vector<st_chandle_t> connected(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) {
    clients.push_back(std::make_unique<Endpoint>());
    ASSERT_EQ(st_connect(*clients[i], ":3000", &connected[i]), 0);
    ASSERT_EQ(st_accept(server, &accepted[i]), 0);
  }
  std::vector<std::thread> threads;
  std::vector<unsigned> answered(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      st_header_t got;
      for (unsigned word = 0; word < kWords; ++word)
        if (send(connected[i], header(ST_OP_NOP)) == 0 && receive(connected[i], got) == 0)
          ++answered[i];
    });
    threads.emplace_back([&, i] {
      st_header_t got;
      for (unsigned word = 0; word < kWords; ++word)
        if (receive(accepted[i], got) == 0) send(accepted[i], header(ST_OP_NOP));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered, std::vector<unsigned>(kThreads, kWords));
}

TEST(ShardsOfADaemon, AreTakenInTurnByOneProgramAfterTheOther) {
  const Daemon daemon("loop,queues=3");
  unsigned first = 0;
  for (unsigned i = 0; i < 2 * kShards; ++i) {
    const UseLink use(daemon.link());
    Endpoint endpoint;  // as of a new program: the link closes with its last endpoint
    unsigned own = 0;
    for (unsigned port = 4000; port < 4000 + kShards; ++port)
      if (st_setopt(endpoint, ST_OPT_PORT_LOCAL, &port) == 0) own = port;
    if (i == 0) first = own;
    EXPECT_EQ(own % kShards, (first + i) % kShards) << i;
  }
}

}  // namespace
}  // namespace stp::test
