// SPDX-License-Identifier: BSD-3-Clause
// Shards over devices that have queues but do not steer, and over an interface, which has one
// queue.
#include <unistd.h>

#include "tests/dpdk_port/network_namespace.h"
#include "tests/dpdk_port/shards_fixture.h"

namespace stp::port::shards_devices_test {
namespace {

// Both drivers are software and take one another for the other end.
class ShardsOverVhost : public ::testing::Test {
 protected:
  void TearDown() override {
    front.ports.clear();
    back.ports.clear();
    unlink(path.c_str());
  }
  void open(unsigned queues, unsigned of_back, unsigned of_front) {
    const std::string number = std::to_string(queues);
    back.open("vdev:net_vhost3,iface=" + path + ",queues=" + number +
              ",mac=02:00:00:00:00:0a,address=10.9.0.1/24,shards=" + std::to_string(of_back));
    open_front(queues, of_front);
  }
  void open_front(unsigned queues, unsigned shards) {
    front.open("vdev:net_virtio_user4,path=" + path + ",queues=" + std::to_string(queues) +
               ",mac=02:00:00:00:00:0b,address=10.9.0.2/24,shards=" + std::to_string(shards));
  }
  const std::string path = "/tmp/stp-vhost-test-" + std::to_string(getpid()) + ".sock";
  ShardedEnd back, front;
};

TEST_F(ShardsOverVhost, TwoQueuesCarryWhatEachSends) {
  open(2, 2, 2);
  expect_all_shards_reach_all(front, back, 100);
  expect_all_shards_reach_all(back, front, 1000);
  EXPECT_NE(back.ports[0]->steering().find("2 receive queues"), std::string::npos)
      << back.ports[0]->steering();
  // A shard has one queue to send on, so that of two frames one is for the other shard.
  EXPECT_GT(back.total("wrong_queue"), 0U);
}

TEST_F(ShardsOverVhost, WithAQueueForEachPairNothingIsHandedOver) {
  open(4, 2, 2);
  expect_all_shards_reach_all(front, back, 100);
  expect_all_shards_reach_all(back, front, 1000);
  for (const ShardedEnd* const end : {&back, &front}) {
    EXPECT_EQ(end->total("wrong_queue"), 0U);
    EXPECT_EQ(end->total("shard_given"), 0U);
  }
}

TEST_F(ShardsOverVhost, AShardWithoutAQueueSendsThroughTheFirst) {
  open(2, 4, 1);
  expect_all_shards_reach_all(front, back, 100);
  expect_all_shards_reach_all(back, front, 1000);
  EXPECT_NE(back.ports[0]->steering().find("it has 2 receive queues"), std::string::npos)
      << back.ports[0]->steering();
}

TEST_F(ShardsOverVhost, TheFrontComesBack) {
  open(2, 2, 2);
  expect_all_shards_reach_all(front, back, 100);
  front.ports.clear();
  open_front(2, 2);
  for (ShardedEnd* const end : {&back, &front})
    for (auto& engine : end->engines) engine.received.clear();
  expect_all_shards_reach_all(front, back, 100);
  expect_all_shards_reach_all(back, front, 100);
}

TEST(ShardsOverVdev, ADeviceThatDoesNotSteerSaysWhy) {
  ShardedEnd end;
  end.open("vdev:net_null0,no-rx=1,shards=2");
  const std::string why = end.ports[0]->steering();
  EXPECT_NE(why.find("refuses rte_flow rules on the D_Port"), std::string::npos) << why;
  EXPECT_NE(why.find("each shard sends on its own"), std::string::npos) << why;
  end.engines[1].send(frame_for(1, {{2, 0, 0, 0, 0, 9}}, end.mac()));
  end.turn(1);
  EXPECT_EQ(end.engines[1].waiting(), 0U);
  EXPECT_EQ(counter(*end.ports[0], "link_tx_packets"), 1U) << "by its own queue";
  EXPECT_EQ(end.total("shard_full"), 0U);
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
  EXPECT_NE(a.ports[0]->steering().find("a packet socket has one queue"), std::string::npos);
}
}  // namespace
}  // namespace stp::port::shards_devices_test
