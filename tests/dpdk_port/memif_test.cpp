// SPDX-License-Identifier: BSD-3-Clause
// Two links of one process over shared memory.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "stp/wire/big_endian.h"
#include "stp/wire/header.h"
#include "tests/dpdk_port/link_pair.h"

namespace stp::port::memif_test {
namespace {

void leave_socket_behind(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(socket, 1), 0);
  close(socket);
}

bool goes_down(LinkEnd& end) {
  return turn_until(end, end, [&] { return !end.port->link_up(); });
}

class Memif : public ::testing::Test {
 protected:
  void TearDown() override {
    client.port.reset();
    server.port.reset();
    unlink(path.c_str());
  }
  void open(const std::string& options = "") {
    server.open("memif:" + path + ",role=server,address=10.9.0.1/24" + options);
    client.open("memif:" + path + ",role=client,address=10.9.0.2/24" + options);
  }

  const std::string path = "/tmp/stp-port-test-" + std::to_string(getpid()) + ".sock";
  LinkEnd server, client;
};

TEST_F(Memif, SaysWhatItIs) {
  open();
  const PortInfo& info = server.port->info();
  EXPECT_EQ(info.driver, "memif");
  EXPECT_EQ(info.mtu, 9000U);
  EXPECT_EQ(info.max_stu, 13U);
  EXPECT_TRUE(info.attaches);
  EXPECT_EQ(info.address, parse_ipv4("10.9.0.1"));
  EXPECT_NE(server.mac(), client.mac());
}

TEST_F(Memif, CarriesSmallFramesBothWays) {
  open();
  expect_frames_arrive_in_order(client, server, 60, 5000);
  expect_frames_arrive_in_order(server, client, 60, 5000);
}

TEST_F(Memif, CarriesJumboFramesBothWays) {
  open();
  expect_frames_arrive_in_order(client, server, 9014, 2000);
  expect_frames_arrive_in_order(server, client, frame_room(9000), 2000);
}

TEST_F(Memif, AttachedMemoryArrivesAndEachTokenComesBackOnce) {
  open();
  expect_attached_memory_arrives(client, server, 8192, 1000);
  expect_attached_memory_arrives(server, client, 256, 1000);
}

// What the Node only copies is not copied out of the ring before: it lies there until then.
TEST_F(Memif, LongDataIsReceivedWhereItLies) {
  open();
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  constexpr std::size_t kHead = 54, kStu = 8192, kFrames = 3000;  // more than a ring holds
  const auto data = [&](std::size_t length, unsigned seed) {
    Frame frame = make_frame(server.mac(), client.mac(), kHead + length, seed);
    std::fill_n(frame.begin() + wire::kEthernetSize, wire::kHeaderSize, std::byte{0});
    wire::store16(&frame[wire::kEthernetSize], wire::op_flags(wire::Op::kData));
    return frame;
  };
  for (unsigned i = 0; i < kFrames; ++i) client.engine.send(data(kStu, i));
  ASSERT_TRUE(turn_until(client, server, [&] { return server.engine.received.size() == kFrames; }));
  for (unsigned i = 0; i < kFrames; ++i) ASSERT_EQ(server.engine.received[i], data(kStu, i)) << i;
  EXPECT_EQ(server.engine.apart, kFrames * kStu);
  Frame summed = data(kStu, 1);
  summed[wire::kEthernetSize + wire::at::kCksum] = std::byte{1};
  client.engine.send(summed);
  client.engine.send(data(100, 2));
  ASSERT_TRUE(
      turn_until(client, server, [&] { return server.engine.received.size() == kFrames + 2; }));
  EXPECT_EQ(server.engine.received[kFrames], summed) << "its Cksum is checked on a copy";
  EXPECT_EQ(server.engine.received[kFrames + 1], data(100, 2));
  EXPECT_EQ(server.engine.apart, kFrames * kStu);
}

TEST_F(Memif, WithCopyingNothingIsAttachedAndAllArrives) {
  open(",copy=1");
  EXPECT_FALSE(client.port->info().attaches);
  expect_attached_memory_arrives(client, server, 8192, 200);
}

TEST_F(Memif, FramesInSeveralBuffersArePutTogether) {
  open(",bsize=2048");
  expect_frames_arrive_in_order(client, server, 9000, 500);
  expect_attached_memory_arrives(client, server, 8192, 200);
}

TEST_F(Memif, FramesLongerThanTheLinkAllowsAreDropped) {
  server.open("memif:" + path + ",role=server,mtu=1500,bsize=2048");
  client.open("memif:" + path + ",role=client,mtu=9000,bsize=2048");
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  constexpr unsigned kLong = 300;  // more than a ring holds
  for (unsigned i = 0; i < kLong; ++i)
    client.engine.send(make_frame(server.mac(), client.mac(), 9000));
  client.engine.send(make_frame(server.mac(), client.mac(), 600, 1));
  EXPECT_TRUE(turn_faster_until(client, server, [&] { return !server.engine.received.empty(); }));
  ASSERT_EQ(server.engine.received.size(), 1U);
  EXPECT_EQ(server.engine.received[0].size(), 600U);
  EXPECT_EQ(counter(*server.port, "link_rx_errors"), kLong);
}

TEST_F(Memif, EndsFindEachOtherByArp) {
  open();
  expect_both_ends_resolve(server, *parse_ipv4("10.9.0.1"), client, *parse_ipv4("10.9.0.2"));
  EXPECT_EQ(counter(*server.port, "arp_requests_sent"), 1U);
  EXPECT_EQ(counter(*client.port, "arp_answers_sent"), 1U);
}

// All leave in one turn, and so does the frame, which is built where one of them was.
TEST_F(Memif, AFrameAfterSeveralOfArpIsWhole) {
  open();
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  const auto asked = counter(*server.port, "arp_requests_sent");
  for (const auto* const nobody : {"10.9.0.3", "10.9.0.4", "10.9.0.5"})
    EXPECT_FALSE(server.port->resolve(*parse_ipv4(nobody), now()));
  const Frame frame = make_frame(client.mac(), server.mac(), 600, 1);
  server.engine.send(frame);
  EXPECT_TRUE(turn_until(client, server, [&] { return !client.engine.received.empty(); }));
  EXPECT_EQ(client.engine.received.at(0), frame);
  EXPECT_EQ(counter(*server.port, "arp_requests_sent") - asked, 3U);
}

TEST_F(Memif, FramesToOurselvesDoNotCrossTheLink) {
  open();
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  const Frame memory = make_bytes(4096, 9);
  const Frame head = make_frame(client.mac(), client.mac(), 54);
  client.engine.send(make_frame(server.mac(), client.mac(), 60, 1));
  client.engine.send_attached(head, memory, 4);
  client.engine.send(make_frame(server.mac(), client.mac(), 60, 2));
  EXPECT_TRUE(turn_until(client, server, [&] {
    return client.engine.received.size() == 1 && server.engine.received.size() == 2;
  }));
  EXPECT_EQ(client.engine.received[0], join(head, memory));
  EXPECT_EQ(client.engine.returned[4], 1U);
  EXPECT_EQ(server.engine.received[1], make_frame(server.mac(), client.mac(), 60, 2));
  EXPECT_EQ(counter(*client.port, "looped"), 1U);
}

TEST_F(Memif, TapSeesBothWays) {
  open();
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  RecordingTap tap;
  client.port->set_tap(&tap);
  const Frame memory = make_bytes(4096, 9);
  const Frame head = make_frame(server.mac(), client.mac(), 54);
  client.engine.send_attached(head, memory, 4);
  server.engine.send(make_frame(client.mac(), server.mac(), 60, 3));
  EXPECT_TRUE(turn_until(client, server, [&] {
    return !client.engine.received.empty() && !server.engine.received.empty();
  }));
  ASSERT_EQ(tap.sent.size(), 1U);
  EXPECT_EQ(tap.sent[0], join(head, memory));
  ASSERT_EQ(tap.received.size(), 1U);
  EXPECT_EQ(tap.received[0], make_frame(client.mac(), server.mac(), 60, 3));
}

TEST_F(Memif, WhatATurnReceivesIsAnsweredInTheNext) {
  open();
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  server.engine.answer = make_frame(client.mac(), server.mac(), 60, 2);
  client.engine.send(make_frame(server.mac(), client.mac(), 60, 1));
  client.turn();
  ASSERT_EQ(server.turn(), 1U);
  ASSERT_EQ(server.engine.received.size(), 1U) << "its user sees it now";
  client.turn();
  EXPECT_TRUE(client.engine.received.empty());
  server.turn();
  client.turn();
  EXPECT_EQ(client.engine.received.size(), 1U);
}

// Sleeping threads find frames at once, and not only when they look.
TEST_F(Memif, AFrameWakesWhoSleeps) {
  open();
  expect_frames_arrive_in_order(client, server, 60, 1);
  const auto is_woken = [](const LinkEnd& end, int patience) {
    pollfd waker{.fd = end.port->wake_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&waker, 1, patience) > 0;
  };
  for (auto [from, to] : {std::pair(&client, &server), std::pair(&server, &client)}) {
    ASSERT_TRUE(to->port->prepare_to_sleep());
    to->port->woke_up();  // what the handshake has left
    for (unsigned i = 0; i < 3; ++i) {
      ASSERT_TRUE(to->port->prepare_to_sleep());
      EXPECT_FALSE(is_woken(*to, 0));
      from->engine.send(make_frame(to->mac(), from->mac(), 60, i));
      from->turn();
      EXPECT_TRUE(is_woken(*to, 10'000));
      to->port->woke_up();
      EXPECT_EQ(to->port->wakes(), Port::Wakes::kMostly);
      EXPECT_FALSE(to->port->prepare_to_sleep()) << "the frame waits";
      to->port->woke_up();
      EXPECT_NE(to->turn(), 0U);
    }
    from->engine.send(make_frame(to->mac(), from->mac(), 60));
    from->turn();
    EXPECT_FALSE(is_woken(*to, 0)) << "it is awake";
    EXPECT_NE(to->turn(), 0U);
  }
}

TEST_F(Memif, FramesAPeerHasNoRoomForAreKeptAndArriveLater) {
  open(",rsize=5");  // 32 frames
  ASSERT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  constexpr unsigned kFrames = 200;
  for (unsigned i = 0; i < kFrames; ++i) {
    client.engine.send(make_frame(server.mac(), client.mac(), 60, i));
  }
  const Time start = now();
  while (counter(*client.port, "tx_kept") == 0) client.port->turn(client.engine, start);
  EXPECT_GT(client.engine.waiting(), 0U);  // frames without room stay in the Node
  EXPECT_TRUE(turn_until(client, server, [&] { return server.engine.received.size() >= kFrames; }));
  EXPECT_EQ(server.engine.received.back(), make_frame(server.mac(), client.mac(), 60, kFrames - 1));
  EXPECT_EQ(counter(*client.port, "tx_dropped"), 0U);
}

TEST_F(Memif, ALinkThatStaysDownCountsAndDropsWhatItIsGiven) {
  server.open("memif:" + path + ",role=server");
  EXPECT_FALSE(server.port->link_up());
  const Frame memory = make_bytes(4096, 9);
  for (RegionId i = 1; i <= 40; ++i) {
    server.engine.send_attached(make_frame(MacAddr{{2, 0, 0, 0, 0, 9}}, server.mac(), 54), memory,
                                i);
  }
  Time t = now();
  server.port->turn(server.engine, t);
  EXPECT_TRUE(server.engine.returned.empty());  // frames are kept for a while
  server.port->turn(server.engine, t += 100 * kMillisecond);
  server.port->turn(server.engine, t);
  EXPECT_EQ(counter(*server.port, "tx_dropped"), 40U);
  EXPECT_EQ(server.engine.returned.size(), 40U);
}

TEST_F(Memif, AClientFindsItsServerAgain) {
  open();
  expect_frames_arrive_in_order(client, server, 60, 100);
  server.port.reset();
  EXPECT_TRUE(goes_down(client));
  client.engine.send(make_frame(client.mac(), client.mac(), 60));  // still works meanwhile
  EXPECT_TRUE(turn_until(client, client, [&] { return counter(*client.port, "link_sought") > 0; }));
  EXPECT_EQ(client.engine.received.size(), 1U);
  server.open("memif:" + path + ",role=server");
  EXPECT_TRUE(turn_until(client, server, [&] { return client.port->link_up(); }));
  server.engine.received.clear();
  client.engine.received.clear();
  expect_frames_arrive_in_order(client, server, 60, 100);
  expect_attached_memory_arrives(server, client, 8192, 10);
}

TEST_F(Memif, TheSocketOfAServerThatWasKilledIsTakenOver) {
  leave_socket_behind(path);
  open();
  expect_frames_arrive_in_order(client, server, 60, 100);
}

TEST_F(Memif, WhatIsNoSocketOfADeadServerIsLeftAlone) {
  std::ofstream(path) << "a file";
  std::string error;
  EXPECT_EQ(open_link("memif:" + path + ",role=server", error), nullptr);
  EXPECT_NE(error.find("a file that is no socket is there"), std::string::npos) << error;
  EXPECT_TRUE(std::ifstream(path).good());
}

TEST_F(Memif, LinksOpenAndCloseAtAnyTime) {
  for (int round = 0; round < 3; ++round) {
    open();
    expect_frames_arrive_in_order(client, server, 60, 100);
    client.port.reset();
    EXPECT_TRUE(goes_down(server));
    client.open("memif:" + path + ",role=client");
    expect_frames_arrive_in_order(client, server, 60, 100);
    client.port.reset();
    server.port.reset();
  }
}

TEST_F(Memif, OpeningALinkLeavesTheCallersThreadWhereItWas) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  open();
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// The link string of DPDK's driver for the other end.
std::string dpdks(const std::string& path, const std::string& role) {
  return "vdev:net_memif7,role=" + role + ",id=0,rsize=8,bsize=9088,socket=" + path +
         ",socket-abstract=no,mac=02:00:00:00:00:0" + (role == "server" ? "1" : "2") + ",mtu=9000";
}

TEST_F(Memif, SpeaksWithDpdksServer) {
  server.open(dpdks(path, "server"));
  client.open("memif:" + path + ",role=client");
  expect_frames_arrive_in_order(client, server, 60, 2000);
  expect_frames_arrive_in_order(server, client, 9014, 2000);
  expect_attached_memory_arrives(client, server, 8192, 500);
}

TEST_F(Memif, SpeaksWithDpdksClient) {
  server.open("memif:" + path + ",role=server");
  client.open(dpdks(path, "client"));
  expect_frames_arrive_in_order(server, client, 60, 2000);
  expect_frames_arrive_in_order(client, server, 9014, 2000);
  expect_attached_memory_arrives(server, client, 8192, 500);
  // It wakes nobody, so this side has to look for frames.
  while (!server.port->prepare_to_sleep()) server.turn();
  client.engine.send(make_frame(server.mac(), client.mac(), 60));
  client.turn();
  server.port->woke_up();
  EXPECT_EQ(server.port->wakes(), Port::Wakes::kNever);
}

TEST_F(Memif, TwoServersShareASocketByTheirIds) {
  LinkEnd other_server, other_client;
  open();
  other_server.open("memif:" + path + ",role=server,id=5,mac=02:00:00:00:00:05");
  other_client.open("memif:" + path + ",role=client,id=5,mac=02:00:00:00:00:06");
  expect_frames_arrive_in_order(client, server, 60, 100);
  expect_frames_arrive_in_order(other_client, other_server, 60, 100);
  std::string error;
  EXPECT_FALSE(open_link("memif:" + path + ",role=server,id=5", error));
  EXPECT_NE(error.find("give this link another id="), std::string::npos) << error;
}

TEST_F(Memif, ASecondClientIsTurnedAwayAndTheFirstGoesOn) {
  open();
  expect_frames_arrive_in_order(client, server, 60, 100);
  LinkEnd second;
  second.open("memif:" + path + ",role=client,mac=02:00:00:00:00:07");
  EXPECT_TRUE(turn_until(second, server, [&] {
    return second.port->trouble().find("another client is connected") != std::string::npos;
  }));
  server.engine.received.clear();
  expect_frames_arrive_in_order(client, server, 60, 100);
  EXPECT_FALSE(second.port->link_up());
}

TEST_F(Memif, AServerWhoseFolderIsMissingSaysSo) {
  std::string error;
  EXPECT_FALSE(open_link("memif:/nowhere/at/all.sock,role=server", error));
  EXPECT_NE(error.find("memif:/nowhere/at/all.sock"), std::string::npos) << error;
}

}  // namespace
}  // namespace stp::port::memif_test
