// SPDX-License-Identifier: BSD-3-Clause
// Links of several UDP sockets at one port, one for each shard.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/dpdk_port/shards_fixture.h"

namespace stp::port::udp_shards_test {
namespace {

constexpr std::size_t kEthernet = 14;

std::string text_of(unsigned queues, std::uint16_t port = 0, const std::string& more = "") {
  return "udp:127.0.0.1,port=" + std::to_string(port) + ",queues=" + std::to_string(queues) + more;
}

struct UdpShards : public ::testing::Test {
  // `there` as `here` names it.
  static MacAddr know(const ShardedEnd& here, const ShardedEnd& there) {
    return here.ports[0]->find_station(address_of(there), now()).value();
  }
  static InternetAddress address_of(const ShardedEnd& end) {
    return InternetAddress::of(Ipv4{INADDR_LOOPBACK}, end.ports[0]->info().udp_port);
  }
  // That many frames for each of 60 Ports from shard 0 of a, `at_once` of them in a turn.
  void send(unsigned at_once) {
    const MacAddr b_at_a = know(a, b);
    expected.assign(b.ports.size(), {});
    for (unsigned i = 0; i < kFrames; ++i) {
      const auto port = static_cast<std::uint16_t>(100 + i % 60);
      const Frame frame = frame_for(port, b_at_a, a.mac(), i);
      a.engines[0].send(frame);
      Frame there = frame;
      std::copy_n(b.mac().octets.data(), 6, reinterpret_cast<std::uint8_t*>(there.data()));
      expected[port % b.ports.size()].push_back(there);
      if (i % at_once == at_once - 1) turn_until(a, b, [&] { return arrived() == i + 1; });
    }
  }
  [[nodiscard]] std::size_t arrived() const {
    std::size_t count = 0;
    for (const auto& engine : b.engines) count += engine.received.size();
    return count;
  }
  // Each shard has got what is for its Ports, whole and in order.
  void expect_all_where_they_belong() {
    ASSERT_TRUE(turn_until(a, b, [&] { return arrived() == kFrames; })) << arrived();
    for (std::size_t shard = 0; shard < b.ports.size(); ++shard) {
      const auto& received = b.engines[shard].received;
      ASSERT_EQ(received.size(), expected[shard].size()) << "shard " << shard;
      for (std::size_t i = 0; i < received.size(); ++i)
        ASSERT_TRUE(std::equal(received[i].begin() + kEthernet, received[i].end(),
                               expected[shard][i].begin() + kEthernet))
            << "shard " << shard << ", frame " << i;
    }
  }

  static constexpr unsigned kFrames = 240;
  ShardedEnd a, b;
  std::vector<std::vector<Frame>> expected;  // of each shard of b, without the names
};

TEST_F(UdpShards, TheKernelBringsEachDatagramToTheShardOfItsPort) {
  a.open(text_of(1));
  b.open(text_of(3));
  EXPECT_EQ(b.ports[0]->steering(),
            "the kernel picks the socket by D_Port: 3 sockets at one UDP port; each shard sends on "
            "its own");
  EXPECT_EQ(a.ports[0]->steering(), "");
  ASSERT_NO_FATAL_FAILURE(send(1));
  ASSERT_NO_FATAL_FAILURE(expect_all_where_they_belong());
  EXPECT_EQ(b.total("wrong_queue"), 0U);
  EXPECT_EQ(b.total("shard_given"), 0U);
  for (const auto& port : b.ports) EXPECT_EQ(port->info().mac, b.mac());
}

// A sender without shards puts datagrams for several Ports into one call, and the kernel looks at
// the first one.
TEST_F(UdpShards, OfJoinedDatagramsEachComesToItsShard) {
  a.open(text_of(1));
  b.open(text_of(2));
  ASSERT_NO_FATAL_FAILURE(send(40));
  ASSERT_NO_FATAL_FAILURE(expect_all_where_they_belong());
  if (b.total("udp_rx_joined") == 0) GTEST_SKIP() << "the kernel joins nothing here";
  EXPECT_GT(b.total("wrong_queue"), 0U);
  EXPECT_EQ(b.total("shard_given"), b.total("wrong_queue"));
  EXPECT_EQ(b.total("shard_full"), 0U);
}

TEST_F(UdpShards, ASenderWithShardsJoinsOnlyWhatIsForOnePort) {
  a.open(text_of(2));
  b.open(text_of(2));
  ASSERT_NO_FATAL_FAILURE(send(40));
  ASSERT_NO_FATAL_FAILURE(expect_all_where_they_belong());
  EXPECT_EQ(b.total("wrong_queue"), 0U);
  EXPECT_EQ(b.total("shard_given"), 0U);
}

TEST_F(UdpShards, AllShardsSendAsOneStation) {
  a.open(text_of(1));
  b.open(text_of(2));
  const MacAddr a_at_b = know(b, a), b_at_a = know(a, b);
  EXPECT_EQ(b.ports[1]->find_station(address_of(a), now()), a_at_b);
  for (auto& engine : b.engines) engine.send(frame_for(7, a_at_b, b.mac()));
  ASSERT_TRUE(turn_until(a, b, [&] { return a.engines[0].received.size() == 2; }));
  for (const Frame& each : a.engines[0].received)
    EXPECT_TRUE(std::equal(each.begin() + 6, each.begin() + 12,
                           reinterpret_cast<const std::byte*>(b_at_a.octets.data())));
}

// The kernel does not know who listens, so the shard that gets the request hands it over.
TEST_F(UdpShards, ARequestComesToTheShardOfItsListenerWhichCanAnswer) {
  a.open(text_of(1));
  b.open(text_of(2));
  for (const unsigned shard : {0U, 1U}) ASSERT_TRUE(b.shards().listen(3000 + shard, shard));
  const MacAddr b_at_a = know(a, b);
  for (const unsigned shard : {0U, 1U})
    a.engines[0].send(request_for(3000 + shard, b_at_a, a.mac()));
  ASSERT_TRUE(turn_until(a, b, [&] { return arrived() == 2; }));
  ASSERT_EQ(b.engines[1].received.size(), 1U);
  EXPECT_EQ(b.total("wrong_queue"), 0U) << "it names no Port";
  // The one that it was handed to knows who has asked.
  MacAddr asker;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(b.engines[1].received[0].data()) + 6, 6,
              asker.octets.data());
  b.engines[1].send(frame_for(9, asker, b.mac()));
  EXPECT_TRUE(turn_until(a, b, [&] { return !a.engines[0].received.empty(); }));
}

TEST_F(UdpShards, FramesToItselfComeToTheShardOfTheirPort) {
  b.open(text_of(2));
  const Frame memory = make_bytes(500, 3);
  Frame head = frame_for(5, b.mac(), b.mac());
  head.resize(kEthernet + 40);
  b.engines[0].send_attached(head, memory, 1);
  b.engines[0].send(frame_for(4, b.mac(), b.mac()));
  until_idle(b);
  ASSERT_EQ(b.engines[0].received.size(), 1U);
  ASSERT_EQ(b.engines[1].received.size(), 1U);
  EXPECT_EQ(b.engines[1].received[0], join(head, memory));
  EXPECT_EQ(b.engines[0].returned[1], 1U) << "its memory is free again";
  EXPECT_EQ(b.total("udp_tx_datagrams"), 0U);
}

// Whatever strangers send, in any length, some shard gets it once.
TEST_F(UdpShards, WhatIsTooShortToNameAPortComesToTheFirstShard) {
  b.open(text_of(3));
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage name{};
  const socklen_t length = to_socket_address(address_of(b), AF_INET, name);
  const Frame bytes(80, std::byte{0xff});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_EQ(::sendto(fd, bytes.data(), size, 0, reinterpret_cast<const sockaddr*>(&name), length),
              static_cast<ssize_t>(size));
  ::close(fd);
  ASSERT_TRUE(turn_until(b, b, [&] { return arrived() == bytes.size(); }));
  EXPECT_GE(b.engines[0].received.size(), 6U);
}

TEST_F(UdpShards, ADestroyedShardLeavesTheOthersWhereTheyAre) {
  a.open(text_of(1));
  b.open(text_of(3));
  const MacAddr b_at_a = know(a, b);
  b.ports[0].reset();
  a.engines[0].send(frame_for(2, b_at_a, a.mac()));
  const Time end = now() + 30 * kSecond;
  while (b.engines[2].received.empty() && now() < end) {
    a.turn();
    b.turn(2);
  }
  EXPECT_EQ(b.engines[2].received.size(), 1U);
}

TEST_F(UdpShards, NobodyElseGetsThePort) {
  b.open(text_of(2));
  const std::uint16_t port = b.ports[0]->info().udp_port;
  for (const unsigned queues : {1U, 2U}) {
    LinkConfig config;
    std::string error;
    ASSERT_TRUE(parse_link(text_of(queues, port), config, error));
    OpenError why;
    EXPECT_TRUE(Port::open_shards(config, why).empty());
    EXPECT_NE(why.text.find("another program has this UDP port"), std::string::npos) << why.text;
    EXPECT_TRUE(why.is_taken);
  }
}

// The kernel lets in sockets of the same user only.
TEST_F(UdpShards, AnotherUserCannotJoinThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  b.open(text_of(2));
  sockaddr_storage name{};
  const socklen_t length = to_socket_address(address_of(b), AF_INET, name);
  int joined = -1;
  // Of this thread alone.
  std::thread([&] {
    if (::syscall(SYS_setresuid, 65'534, 65'534, 65'534) != 0) return;
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    joined = ::bind(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0 ? 1 : 0;
    ::close(fd);
  }).join();
  if (joined < 0) GTEST_SKIP() << "this process may not be another user";
  EXPECT_EQ(joined, 0);
}

// Without a program the kernel picks by a hash of the addresses.
TEST_F(UdpShards, WithoutSteeringShardsHandFramesOver) {
  a.open(text_of(1));
  b.open(text_of(2));
  const int none = 0;
  if (::setsockopt(b.ports[0]->wake_fd(), SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &none,
                   sizeof none) != 0)
    GTEST_SKIP() << "this kernel keeps the program";
  ASSERT_NO_FATAL_FAILURE(send(1));
  ASSERT_NO_FATAL_FAILURE(expect_all_where_they_belong());
  EXPECT_GT(b.total("shard_given"), 0U);
}

}  // namespace
}  // namespace stp::port::udp_shards_test
