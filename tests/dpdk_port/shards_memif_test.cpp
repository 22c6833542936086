// SPDX-License-Identifier: BSD-3-Clause
// Shards over a memif: a queue for each shard of the other end, whatever the other end is.
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "dpdk_port/memif/memif.h"
#include "tests/dpdk_port/shards_fixture.h"

namespace stp::port::shards_memif_test {
namespace {

// DPDK's driver at the other end, with so many queue pairs.
std::string dpdks_memif(const std::string& path, const std::string& role, unsigned queues) {
  return "vdev:net_memif7,role=" + role + ",id=0,rsize=8,bsize=9088,socket=" + path +
         ",socket-abstract=no,mac=02:00:00:00:00:0" + (role == "server" ? "1" : "2") +
         ",mtu=9000,shards=" + std::to_string(queues);
}

class ShardsOverMemif : public ::testing::Test {
 protected:
  void TearDown() override {
    client.ports.clear();
    server.ports.clear();
    unlink(path.c_str());
  }
  void open(const std::string& of_server, const std::string& of_client) {
    server.open("memif:" + path + ",role=server,address=10.9.0.1/24" + of_server);
    client.open("memif:" + path + ",role=client,address=10.9.0.2/24" + of_client);
  }
  const std::string path = "/tmp/stp-shards-test-" + std::to_string(getpid()) + ".sock";
  ShardedEnd server, client;
};

TEST_F(ShardsOverMemif, EachReachesEach) {
  open(",queues=2", ",queues=3");
  expect_all_shards_reach_all(client, server, 100);
  expect_all_shards_reach_all(server, client, 8000);
}

TEST_F(ShardsOverMemif, APeerOfOneQueueSeesOneStation) {
  open(",queues=4", "");
  expect_all_shards_reach_all(client, server, 100);
  expect_all_shards_reach_all(server, client, 100);
}

TEST_F(ShardsOverMemif, EachFindsThePeersAddress) {
  open(",queues=2", ",queues=2");
  expect_each_shard_resolves(client, server, *parse_ipv4("10.9.0.1"));
  EXPECT_EQ(counter(*client.ports[0], "arp_requests_sent"), 1U) << "they have one memory";
}

TEST_F(ShardsOverMemif, TapsSeeEachFrameOnTheLinkOnce) {
  open(",queues=2", ",queues=2");
  ASSERT_TRUE(turn_until(client, server, [&] { return client.ports[0]->link_up(); }));
  RecordingTap tap;
  for (const auto& port : client.ports) port->set_tap(&tap);
  const Frame there = frame_for(1, server.mac(), client.mac(), 1);
  const Frame back = frame_for(1, client.mac(), server.mac(), 2);
  client.engines[1].send(there);
  server.engines[1].send(back);
  EXPECT_TRUE(turn_until(client, server, [&] {
    return !client.engines[1].received.empty() && !server.engines[1].received.empty();
  }));
  EXPECT_EQ(tap.sent, std::vector<Frame>{there});
  EXPECT_EQ(tap.received, std::vector<Frame>{back});
}

// Between our own ends each frame comes to the shard of its Port, whatever their numbers are.
TEST_F(ShardsOverMemif, NothingIsHandedOver) {
  for (const auto& [of_server, of_client] : {std::pair(2, 2), std::pair(2, 3), std::pair(1, 3)}) {
    open(",queues=" + std::to_string(of_server), ",queues=" + std::to_string(of_client));
    expect_all_shards_reach_all(client, server, 100);
    expect_all_shards_reach_all(server, client, 8000);
    for (ShardedEnd* const end : {&server, &client}) {
      if (end->ports.size() == 1) continue;
      EXPECT_EQ(end->total("wrong_queue"), 0U);
      EXPECT_EQ(end->total("shard_given"), 0U);
      EXPECT_NE(end->ports[0]->steering().find("the peer picks the queue"), std::string::npos)
          << end->ports[0]->steering();
    }
    client.ports.clear();
    server.ports.clear();
  }
}

TEST_F(ShardsOverMemif, APeerOfFewQueuesIsNamed) {
  open(",queues=4", ",queues=2");
  EXPECT_EQ(server.ports[0]->steering(), "not decided: no peer");
  client.ports.clear();
  client.open(dpdks_memif(path, "client", 2));
  expect_all_shards_reach_all(client, server, 100);
  expect_all_shards_reach_all(server, client, 100);
  EXPECT_NE(server.ports[0]->steering().find("few queues for 4 shards (2 in, 2 out)"),
            std::string::npos)
      << server.ports[0]->steering();
}

// A server of another implementation ends what asks for more rings than it has queues. It is asked
// for one then.
TEST_F(ShardsOverMemif, AServerThatRefusesSeveralQueuesIsReachedByOne) {
  server.open(dpdks_memif(path, "server", 1));
  client.open("memif:" + path + ",role=client,queues=2");
  expect_all_shards_reach_all(client, server, 100);
  expect_all_shards_reach_all(server, client, 8000);
  EXPECT_NE(client.ports[0]->steering().find("(1 in, 1 out)"), std::string::npos)
      << client.ports[0]->steering();
}

TEST_F(ShardsOverMemif, DpdksServerOfSeveralQueuesIsReachedByAll) {
  server.open(dpdks_memif(path, "server", 2));
  client.open("memif:" + path + ",role=client,queues=2");
  expect_all_shards_reach_all(client, server, 100);
  expect_all_shards_reach_all(server, client, 8000);
  EXPECT_EQ(client.ports[0]->steering(), "the peer picks the queue: 2 in, 2 out");
}

// A peer that picks queues by a rule of its own loses nothing.
TEST_F(ShardsOverMemif, AFrameOnTheWrongQueueIsHandedOverAndCounted) {
  server.open("memif:" + path + ",role=server,queues=2");
  std::string error;
  const auto peer = memif::Memif::open({.socket = path, .shards = 2}, error);
  ASSERT_TRUE(peer) << error;
  const MacAddr from{{2, 0, 0, 0, 0, 9}};
  const Time end = now() + 30 * kSecond;
  while (!peer->connected() && now() < end) {
    peer->tend(now());
    server.turn();
  }
  ASSERT_TRUE(peer->connected());
  ASSERT_EQ(peer->senders().size(), 4U);
  std::vector<std::vector<Frame>> expected(2);
  for (std::uint16_t port = 10; port < 14; ++port) {
    for (unsigned ring = 0; ring < 4; ++ring) {
      const Frame frame = frame_for(port, server.mac(), from, port * 4 + ring);
      const Bytes part(frame);
      ASSERT_TRUE(peer->senders()[ring].put(std::span(&part, 1)));
      peer->senders()[ring].publish();
      expected[port % 2].push_back(frame);
    }
  }
  const Frame request = request_for(3000, server.mac(), from);
  ASSERT_TRUE(server.shards().listen(3000, 1));
  const Bytes part(request);
  ASSERT_TRUE(peer->senders()[0].put(std::span(&part, 1)));
  peer->senders()[0].publish();
  expected[1].push_back(request);
  until_idle(server);
  for (unsigned i = 0; i < 2; ++i) {
    std::sort(server.engines[i].received.begin(), server.engines[i].received.end());
    std::sort(expected[i].begin(), expected[i].end());
    EXPECT_TRUE(server.engines[i].received == expected[i]) << i;
  }
  EXPECT_EQ(server.total("wrong_queue"), 8U) << "an RC names no Port";
  EXPECT_EQ(server.total("shard_given"), 9U);
  EXPECT_EQ(server.total("shard_full"), 0U);
}

TEST_F(ShardsOverMemif, APeerComesBackWithAnotherNumberOfShards) {
  open(",queues=3", ",queues=2");
  expect_all_shards_reach_all(client, server, 100);
  for (const char* const queues : {"", ",queues=3", ",queues=2"}) {
    client.ports.clear();
    ASSERT_TRUE(turn_until(server, server, [&] { return !server.ports.back()->link_up(); }));
    client.open("memif:" + path + ",role=client" + queues);
    for (ShardedEnd* const end : {&server, &client})
      for (auto& engine : end->engines) engine.received.clear();
    expect_all_shards_reach_all(client, server, 100);
    expect_all_shards_reach_all(server, client, 100);
  }
}

// Each shard in a thread, while the other side comes and goes: nobody touches memory that is gone.
TEST_F(ShardsOverMemif, APeerThatDiesIsLeftByAllShards) {
  server.open("memif:" + path + ",role=server,queues=3");
  std::atomic<bool> stop{false};
  std::array<std::atomic<unsigned>, 3> came{};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      ScriptEngine& engine = server.engines[i];
      const Frame frame = frame_for(1, {{2, 0, 0, 0, 0, 9}}, server.mac());
      while (!stop) {
        if (engine.waiting() == 0) engine.send(frame);
        server.turn(i);
        came[i] += static_cast<unsigned>(engine.received.size());
        engine.received.clear();
        std::this_thread::yield();
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    for (auto& count : came) count = 0;
    client.open("memif:" + path + ",role=client,queues=2");
    const Time end = now() + 30 * kSecond;
    const auto all_have = [&] { return std::ranges::all_of(came, [](auto& n) { return n > 0; }); };
    while (!all_have() && now() < end) {
      for (std::uint16_t port = 1; port <= 3; ++port)
        client.engines[0].send(frame_for(port, server.mac(), client.mac()));
      client.turn();
    }
    EXPECT_TRUE(all_have()) << "round " << round;
    client.ports.clear();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST_F(ShardsOverMemif, TheOthersHearOfALinkThatIsDown) {
  server.open("memif:" + path + ",role=server,queues=2");
  EXPECT_EQ(server.ports[1]->state(), LinkState::kNoPeer);
  EXPECT_NE(server.ports[1]->trouble().find("role=client"), std::string::npos);
}
}  // namespace
}  // namespace stp::port::shards_memif_test
