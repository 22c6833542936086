// SPDX-License-Identifier: BSD-3-Clause
// The shards of one link: each frame reaches the shard of its Port, and the shard with the device
// sends the frames of all.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "stp/wire/frame.h"
#include "stp/wire/operation.h"
#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/network_namespace.h"

namespace stp::port {
namespace {

struct ShardedEnd {
  void open(const std::string& text) {
    LinkConfig config;
    std::string error;
    ASSERT_TRUE(parse_link(text, config, error)) << error;
    ports = Port::open_shards(config, error);
    ASSERT_FALSE(ports.empty()) << error;
    engines.resize(ports.size());
  }
  unsigned turn(std::size_t shard) {
    return static_cast<LinkPort&>(*ports[shard]).turn(engines[shard], now());
  }
  unsigned turn() {
    unsigned moved = 0;
    for (std::size_t i = 0; i < ports.size(); ++i) moved += turn(i);
    return moved;
  }
  [[nodiscard]] const MacAddr& mac() const { return ports[0]->info().mac; }
  Shards& shards() { return *ports[0]->info().shards; }
  [[nodiscard]] std::uint64_t total(const std::string& name) const {
    return std::accumulate(
        ports.begin(), ports.end(), std::uint64_t{0},
        [&](std::uint64_t sum, const auto& port) { return sum + counter(*port, name); });
  }

  std::vector<ScriptEngine> engines;
  std::vector<std::unique_ptr<Port>> ports;  // destroyed first
};

// An STP frame to a Port, with bytes that distinguish it from others.
Frame frame_for(std::uint16_t port, const MacAddr& to, const MacAddr& from, unsigned seed = 0,
                std::size_t length = 100) {
  wire::Header header;
  header.op_flags = wire::op_flags(wire::Op::kData);
  header.d_port = port;
  Frame frame(length + 100);
  frame.resize(wire::emit({to, from, {}, false}, header, make_bytes(length, seed), {}, frame));
  return frame;
}

Frame request_for(std::uint32_t uport, const MacAddr& to, const MacAddr& from) {
  const auto header = wire::to_header(wire::RequestConnection{
      .i_slots = 8, .i_bufsize = 12, .i_key = 7, .i_max_stu = 9, .r_uport = uport});
  Frame frame(200);
  frame.resize(wire::emit({to, from, {}, false}, header, {}, {}, frame));
  return frame;
}

bool turn_until(ShardedEnd& a, ShardedEnd& b, const std::function<bool()>& done) {
  const Time end = now() + 30 * kSecond;
  while (!done()) {
    if (now() > end) return false;
    a.turn();
    b.turn();
  }
  return true;
}

void until_idle(ShardedEnd& end) {
  while (end.turn() > 0) {
  }
}

TEST(Shards, AProgramOfOneQueueRefusesALinkOfSeveral) {
  std::string error;
  EXPECT_FALSE(open_link("loop,queues=2", error));
  EXPECT_NE(error.find("queues="), std::string::npos) << error;
}

TEST(Shards, ThereAreAsManyAsTheLinkSays) {
  ShardedEnd end;
  end.open("loop,queues=3");
  ASSERT_EQ(end.ports.size(), 3U);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(end.ports[i]->info().shard, i);
    EXPECT_EQ(end.ports[i]->info().shards, end.ports[0]->info().shards);
    EXPECT_EQ(end.ports[i]->info().mac, end.mac());
  }
  end.open("loop");
  ASSERT_EQ(end.ports.size(), 1U);
  EXPECT_EQ(end.ports[0]->info().shards, nullptr);
  end.open("loop,queues=auto");
  EXPECT_GE(end.ports.size(), 1U);
  EXPECT_LE(end.ports.size(), kMaxQueues);
}

TEST(Shards, FramesOfALoopLinkGoWhereTheirPortIs) {
  ShardedEnd end;
  end.open("loop,queues=3");
  std::vector<std::vector<Frame>> expected(3);
  for (std::uint16_t port = 1; port <= 600; ++port) {
    const Frame frame = frame_for(port, end.mac(), end.mac(), port);
    end.engines[1].send(frame);
    expected[port % 3].push_back(frame);
  }
  until_idle(end);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(end.engines[i].received, expected[i]) << i;
  EXPECT_EQ(counter(*end.ports[1], "shard_given"), 400U);
  EXPECT_EQ(counter(*end.ports[0], "shard_taken"), 200U);
  EXPECT_EQ(counter(*end.ports[1], "looped"), 200U);
  EXPECT_EQ(end.total("shard_full"), 0U);
}

TEST(Shards, AttachedMemoryCrossesAndItsTokenComesBackAtOnce) {
  ShardedEnd end;
  end.open("loop,queues=2");
  const Frame memory = make_bytes(8192, 3);
  Frame head = frame_for(1, end.mac(), end.mac(), 0, 0);
  end.engines[0].send_attached(head, memory, 77);
  end.turn(0);
  EXPECT_EQ(end.engines[0].returned, (std::map<RegionId, unsigned>{{77, 1}}));
  end.turn(1);
  ASSERT_EQ(end.engines[1].received.size(), 1U);
  EXPECT_EQ(end.engines[1].received[0], join(head, memory));
}

TEST(Shards, ARequestGoesToTheShardThatListens) {
  ShardedEnd end;
  end.open("loop,queues=3");
  ASSERT_TRUE(end.shards().listen(3000, 2));
  end.engines[0].send(request_for(3000, end.mac(), end.mac()));
  end.engines[0].send(request_for(4000, end.mac(), end.mac()));
  until_idle(end);
  EXPECT_EQ(end.engines[2].received.size(), 1U);
  EXPECT_EQ(end.engines[0].received.size(), 1U) << "who has it refuses it";
}

TEST(Shards, WhoFindsNoRoomWaitsAndNothingIsLost) {
  ShardedEnd end;
  end.open("loop,queues=2");
  constexpr unsigned kFrames = 5'000;  // fills a ring many times
  for (unsigned i = 0; i < kFrames; ++i) end.engines[0].send(frame_for(1, end.mac(), end.mac(), i));
  const Time start = now();
  auto& sender = static_cast<LinkPort&>(*end.ports[0]);
  while (counter(sender, "shard_waited") == 0) sender.turn(end.engines[0], start);
  EXPECT_GT(end.engines[0].waiting(), 0U);
  until_idle(end);
  EXPECT_EQ(end.engines[1].received.size(), kFrames);
  EXPECT_EQ(end.total("shard_full"), 0U);
}

TEST(Shards, AShardThatTakesNothingHoldsUpTheOthersForAWhileOnly) {
  ShardedEnd end;
  end.open("loop,queues=3");
  for (unsigned i = 0; i < 3'000; ++i) end.engines[0].send(frame_for(1, end.mac(), end.mac(), i));
  const Frame to_other = frame_for(2, end.mac(), end.mac(), 7);
  end.engines[0].send(to_other);
  auto& sender = static_cast<LinkPort&>(*end.ports[0]);
  Time t = now();
  while (counter(sender, "shard_waited") == 0) sender.turn(end.engines[0], t);
  t += Seat::kPatience;
  for (int turns = 0; turns < 100; ++turns) sender.turn(end.engines[0], t);
  end.turn(2);
  EXPECT_EQ(end.engines[2].received, std::vector<Frame>{to_other});
  EXPECT_GT(counter(sender, "shard_full"), 0U);
}

// A bell that wakes a thread that sleeps for a Port.
class Sleeper {
 public:
  explicit Sleeper(Port& port) : bell_(eventfd(0, EFD_NONBLOCK)) { port.set_bell(bell_); }
  ~Sleeper() { close(bell_); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] bool rung() const {
    eventfd_t value = 0;
    return eventfd_read(bell_, &value) == 0;
  }

 private:
  const int bell_;
};

TEST(Shards, WhatIsHandedOverWakesASleeperAndNobodyElse) {
  ShardedEnd end;
  end.open("loop,queues=2");
  const Sleeper first(*end.ports[0]), second(*end.ports[1]);
  const Frame frame = frame_for(1, end.mac(), end.mac());
  end.engines[0].send(frame);
  end.turn(0);
  EXPECT_FALSE(second.rung()) << "it is awake";
  EXPECT_FALSE(end.ports[1]->prepare_to_sleep()) << "something has come";
  end.turn(1);
  ASSERT_TRUE(end.ports[1]->prepare_to_sleep());
  end.engines[0].send(frame);
  end.turn(0);
  EXPECT_TRUE(second.rung());
  EXPECT_FALSE(first.rung());
  end.ports[1]->woke_up();
  end.ports.clear();  // destroyed before the bells
}

TEST(Shards, WhoWaitsForRoomIsWokenWhenThereIsSome) {
  ShardedEnd end;
  end.open("loop,queues=2");
  const Sleeper first(*end.ports[0]);
  for (unsigned i = 0; i < 3'000; ++i) end.engines[0].send(frame_for(1, end.mac(), end.mac(), i));
  while (counter(*end.ports[0], "shard_waited") == 0) end.turn(0);
  ASSERT_TRUE(end.ports[0]->prepare_to_sleep());
  while (end.turn(1) > 0) {
  }
  EXPECT_TRUE(first.rung());
  end.ports.clear();
}

// Two links of several shards with a wire between them, and frames from each shard to each.
void expect_all_shards_reach_all(ShardedEnd& a, ShardedEnd& b, std::size_t length) {
  ASSERT_TRUE(turn_until(a, b, [&] {
    return a.ports[0]->link_up() && b.ports[0]->link_up() && a.ports.back()->link_up();
  }));
  constexpr unsigned kFrames = 300;
  std::vector<std::vector<Frame>> expected(b.ports.size());
  for (unsigned i = 0; i < kFrames; ++i) {
    const auto port = static_cast<std::uint16_t>(1 + i);
    const Frame frame = frame_for(port, b.mac(), a.mac(), i, length);
    a.engines[i / 7 % a.ports.size()].send(frame);
    expected[port % b.ports.size()].push_back(frame);
  }
  const auto arrived = [&] {
    std::size_t count = 0;
    for (const auto& engine : b.engines) count += engine.received.size();
    return count;
  };
  EXPECT_TRUE(turn_until(a, b, [&] { return arrived() == kFrames; })) << arrived();
  for (std::size_t i = 0; i < b.ports.size(); ++i) {
    auto received = b.engines[i].received;
    std::sort(received.begin(), received.end());
    std::sort(expected[i].begin(), expected[i].end());
    EXPECT_EQ(received, expected[i]) << "shard " << i;
  }
}

void expect_each_shard_resolves(ShardedEnd& a, ShardedEnd& b, Ipv4 address) {
  for (const auto& port : a.ports) {
    EXPECT_TRUE(turn_until(a, b, [&] { return port->resolve(address, now()).has_value(); }));
    EXPECT_EQ(port->resolve(address, now()), b.mac());
  }
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

TEST_F(ShardsOverMemif, TheTapOfTheFirstSeesWhatIsOnTheLink) {
  open(",queues=2", ",queues=2");
  ASSERT_TRUE(turn_until(client, server, [&] { return client.ports[0]->link_up(); }));
  RecordingTap tap;
  client.ports[0]->set_tap(&tap);
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

TEST_F(ShardsOverMemif, TheOthersHearOfALinkThatIsDown) {
  server.open("memif:" + path + ",role=server,queues=2");
  EXPECT_EQ(server.ports[1]->state(), LinkState::kNoPeer);
  EXPECT_NE(server.ports[1]->trouble().find("role=client"), std::string::npos);
}

TEST(ShardsOverIface, EachReachesEach) {
  const NetworkNamespace space;
  if (!space.missing().empty()) GTEST_SKIP() << space.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(9000));
  ShardedEnd a, b;
  a.open("iface:stp0,queues=3,address=10.9.0.1/24");
  b.open("iface:stp1,queues=2,address=10.9.0.2/24");
  expect_all_shards_reach_all(a, b, 100);
  expect_all_shards_reach_all(b, a, 8000);
  expect_each_shard_resolves(a, b, *parse_ipv4("10.9.0.2"));
}

}  // namespace
}  // namespace stp::port
