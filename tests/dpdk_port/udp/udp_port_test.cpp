// SPDX-License-Identifier: BSD-3-Clause
// Links of UDP sockets on the loopback interface, which any user may open.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <random>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/udp/udp_ways.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/frame.h"
#include "tests/dpdk_port/udp/udp_pair.h"

namespace stp::port::udp_port_test {
namespace {

void expect_whole_frames_both_ways(UdpPair& pair) {
  constexpr unsigned kFrames = 300;
  for (unsigned i = 0; i < kFrames; ++i) {
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead + 7 * i, i));
    pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), kHead + 1024, i));
  }
  ASSERT_TRUE(pair.turn_until([&] {
    return pair.a.engine.received.size() == kFrames && pair.b.engine.received.size() == kFrames;
  }));
  for (unsigned i = 0; i < kFrames; ++i) {
    const Frame at_b = frame_of(kData, pair.b.mac(), pair.a_at_b, kHead + 7 * i, i);
    ASSERT_EQ(pair.b.engine.received[i], at_b) << "the names are the receiver's";
    ASSERT_EQ(pair.a.engine.received[i],
              frame_of(kData, pair.a.mac(), pair.b_at_a, kHead + 1024, i));
  }
}

// protocol: 13.2, 13.5
TEST(UdpPort, SaysWhatItIs) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0,mtu=9000");
  const PortInfo& info = end.port->info();
  EXPECT_EQ(info.mtu, 9000U - 28);
  EXPECT_EQ(info.max_stu, 13U);
  EXPECT_EQ(info.address, parse_ipv4("127.0.0.1"));
  EXPECT_EQ(info.device, "127.0.0.1/" + std::to_string(info.udp_port));
  EXPECT_TRUE(info.driver.starts_with("udp")) << info.driver;
  EXPECT_EQ(info.peer_udp_port, 8181) << "a free port is nobody else's";
  EXPECT_FALSE(info.ipv6);
  EXPECT_EQ(end.port->state(), LinkState::kUp);
  EXPECT_GE(end.port->wake_fd(), 0);
  EXPECT_GT(info.receive_queue, 0U);
}

// protocol: 13.1
TEST(UdpPort, CarriesFramesWhole) {
  UdpPair pair;
  ASSERT_NO_FATAL_FAILURE(expect_whole_frames_both_ways(pair));
}

TEST(UdpPort, CarriesFramesOverIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  UdpPair pair("[::1]");
  EXPECT_TRUE(pair.a.port->info().ipv6);
  ASSERT_NO_FATAL_FAILURE(expect_whole_frames_both_ways(pair));
}

TEST(UdpPort, AllAddressesOfAHostReachBothFamilies) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  LinkEnd any, four, six;
  any.open("udp:,port=0");
  four.open("udp:127.0.0.1,port=0");
  six.open("udp:[::1],port=0");
  const MacAddr four_at_any = UdpPair::know(any, four, "127.0.0.1");
  const MacAddr six_at_any = UdpPair::know(any, six, "::1");
  any.engine.send(frame_of(kData, four_at_any, any.mac(), 100, 4));
  any.engine.send(frame_of(kData, six_at_any, any.mac(), 100, 6));
  ASSERT_TRUE(turn_until(any, four, [&] { return !four.engine.received.empty(); }));
  ASSERT_TRUE(turn_until(any, six, [&] { return !six.engine.received.empty(); }));
  EXPECT_TRUE(std::ranges::equal(after_ethernet(four.engine.received[0]),
                                 after_ethernet(frame_of(kData, any.mac(), any.mac(), 100, 4))));
  EXPECT_FALSE(four.port->find_station(*parse_internet_address("::1"), now()))
      << "a socket for IPv4 sends nothing to IPv6";
}

// Datagrams with `bytes` of attached memory each, but every tenth is short.
void expect_attached_memory_arrives(std::size_t bytes) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  const Frame memory = make_bytes(bytes, 3);
  constexpr unsigned kFrames = 100;
  const auto length_of = [&](unsigned i) { return i % 10 == 9 ? 100 : bytes; };
  for (unsigned i = 0; i < kFrames; ++i)
    pair.a.engine.send_attached(data_of(3, pair.b_at_a, pair.a.mac(), kHead, i),
                                Bytes(memory).first(length_of(i)), 1 + i);
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == kFrames; }));
  for (unsigned i = 0; i < kFrames; ++i) {
    Frame whole = data_of(3, pair.b.mac(), pair.a_at_b, kHead, i);
    const Bytes attached = Bytes(memory).first(length_of(i));
    whole.insert(whole.end(), attached.begin(), attached.end());
    ASSERT_EQ(pair.b.engine.received[i], whole) << i;
    EXPECT_EQ(pair.a.engine.returned[1 + i], 1U);
  }
  if (pair.a.port->info().driver.find("segment") != std::string::npos) {
    EXPECT_LT(counter(*pair.a.port, "udp_tx_calls"), kFrames / 4)
        << "at least seven leave in a call";
  }
}

TEST(UdpPort, AttachedMemoryArrivesAndItsTokensComeBackOnce) {
  expect_attached_memory_arrives(8'192);
}

TEST(UdpPort, ShortPiecesOfAttachedMemoryArriveAsWell) {
  for (const std::size_t bytes : std::array<std::size_t, 5>{101, 1'024, 2'048, 2'160, 2'161}) {
    SCOPED_TRACE(bytes);
    expect_attached_memory_arrives(bytes);
  }
}

// A call carries 64 KiB at most. What the engine has to send fills them, however many frames it
// hands over at a time.
TEST(UdpPort, DatagramsFillTheCallsThatSendThem) {
  constexpr unsigned kFrames = 610;
  struct Way {
    const char* options;
    std::size_t stu;
    unsigned in_a_call;
  };
  for (const Way& way : {Way{",mtu=1500", 1'024, 61}, Way{",mtu=9000", 8'192, 7}}) {
    UdpPair pair("127.0.0.1", way.options);
    if (pair.a.port->info().driver.find("segment") == std::string::npos)
      GTEST_SKIP() << "this kernel does not segment";
    for (unsigned i = 0; i < kFrames; ++i)
      pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead + way.stu, i));
    ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == kFrames; }));
    EXPECT_LE(counter(*pair.a.port, "udp_tx_calls"), kFrames / way.in_a_call + 2)
        << "the first burst shows how many fit";
  }
}

// A look for answers after each call or two would take a twentieth of the time. But a turn sends a
// MiB at most, and of what is short 128 frames. A third burst of 63 long ones would be more.
TEST(UdpPort, ATurnGoesOnWhileEachBurstFillsACall) {
  constexpr unsigned kMany = 2'200;
  struct Way {
    const char* options;
    std::size_t payload;
    unsigned least, most;
  };
  for (const Way& way : {Way{",mtu=1500", 1'024, 976, 1'037}, Way{",mtu=1500", 64, 128, 128},
                         Way{",mtu=9000", 8'192, 126, 126}}) {
    UdpPair pair("127.0.0.1", way.options);
    if (pair.a.port->info().driver.find("segment") == std::string::npos)
      GTEST_SKIP() << "this kernel does not segment";
    for (unsigned i = 0; i < kMany; ++i)
      pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead + way.payload, i));
    pair.a.turn();  // shows how many fit
    const unsigned moved = pair.a.turn();
    EXPECT_GE(moved, way.least) << way.payload;
    EXPECT_LE(moved, way.most) << way.payload;
  }
}

// A put of 4 KiB, and the short message that tells of it, sixty times: what leaves in one call has
// one length.
TEST(UdpPort, DataOfTwoRegionsLeavesInFewCallsEachInItsOrder) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  if (pair.a.port->info().driver.find("segment") == std::string::npos)
    GTEST_SKIP() << "this kernel does not segment";
  constexpr unsigned kEach = 60;
  constexpr std::size_t kLong = kHead + 4'096, kShort = kHead + 56;
  for (unsigned i = 0; i < kEach; ++i) {
    pair.a.engine.send(data_of(1, pair.b_at_a, pair.a.mac(), kLong, i));
    pair.a.engine.send(data_of(2, pair.b_at_a, pair.a.mac(), kShort, i));
  }
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 2 * kEach; }));
  unsigned longs = 0, shorts = 0;
  for (const Frame& frame : pair.b.engine.received) {
    const bool is_long = frame.size() == kLong;
    ASSERT_EQ(frame, data_of(is_long ? 1 : 2, pair.b.mac(), pair.a_at_b, frame.size(),
                             is_long ? longs++ : shorts++));
  }
  EXPECT_LE(counter(*pair.a.port, "udp_tx_calls"), 12U);
}

// A program that writes long pieces asks for the next ones between the DATA of others: that may not
// cost calls. DATA keeps its order, and so do requests.
TEST(UdpPort, RequestsToSendAreTheEndsOfCallsOfData) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  if (pair.a.port->info().driver.find("segment") == std::string::npos)
    GTEST_SKIP() << "this kernel does not segment";
  constexpr unsigned kInACall = 7, kRequests = 3;
  constexpr unsigned kFirst = 10 * kInACall, kLongOnes = kFirst + 8 * kInACall;
  constexpr std::size_t kLong = kHead + 8'192, kShort = kHead + 32;
  for (unsigned i = 0; i < kFirst; ++i)  // shows how many fit
    pair.a.engine.send(data_of(1, pair.b_at_a, pair.a.mac(), kLong, i));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == kFirst; }));
  const auto before = counter(*pair.a.port, "udp_tx_calls");
  for (unsigned i = kFirst; i < kLongOnes; ++i) {
    if (i % 20 == 0)
      pair.a.engine.send(frame_of(kRequestToSend, pair.b_at_a, pair.a.mac(), kShort, i / 20));
    pair.a.engine.send(data_of(1, pair.b_at_a, pair.a.mac(), kLong, i));
  }
  ASSERT_TRUE(
      pair.turn_until([&] { return pair.b.engine.received.size() == kLongOnes + kRequests; }));
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_calls") - before, (kLongOnes - kFirst) / kInACall);
  unsigned longs = 0, request = kFirst / 20 + 1;
  for (const Frame& frame : pair.b.engine.received) {
    const bool is_long = frame.size() == kLong;
    ASSERT_EQ(frame, is_long
                         ? data_of(1, pair.b.mac(), pair.a_at_b, kLong, longs++)
                         : frame_of(kRequestToSend, pair.b.mac(), pair.a_at_b, kShort, request++));
  }
}

// On a router of the same machine several of one call are one packet, which it drops if the first
// is too long.
// protocol: 13.20
TEST(UdpPort, RequestsThatFindOutWhatTheWayCarriesLeaveOneByOne) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  constexpr std::byte kRequest{0x01 << 3};
  constexpr unsigned kLengths = 6;
  for (unsigned i = 0; i < kLengths; ++i)
    pair.a.engine.send(
        frame_of(kRequest, pair.b_at_a, pair.a.mac(), kHead + 64 + (8'192U >> i), i));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == kLengths; }));
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_calls"), kLengths);
}

// DATA of one region, and a request among DATA of others, stay where they are.
TEST(UdpPort, WhatHasAnOrderKeepsIt) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  constexpr unsigned kFrames = 60;
  const auto frame = [&](unsigned i, const MacAddr& to, const MacAddr& from) {
    const std::size_t length = kHead + (i % 2 == 0 ? 4'096 : 100);
    if (i >= kFrames / 2 && i % 2 == 1) return frame_of(kClearToSend, to, from, length, i);
    return data_of(1, to, from, length, i);
  };
  for (unsigned i = 0; i < kFrames; ++i) pair.a.engine.send(frame(i, pair.b_at_a, pair.a.mac()));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == kFrames; }));
  for (unsigned i = 0; i < kFrames; ++i)
    ASSERT_EQ(pair.b.engine.received[i], frame(i, pair.b.mac(), pair.a_at_b)) << i;
}

// protocol: 13.3
TEST(UdpPort, LeavesOutWhatOnlyEthernetNeeds) {
  UdpPair pair;
  // A control operation, padded to the shortest Ethernet frame.
  pair.a.engine.send(frame_of(kClearToSend, pair.b_at_a, pair.a.mac(), 60, 1));
  // DATA of two bytes: in 802.3 with SNAP, which states the length.
  wire::Header header;
  header.op_flags = wire::op_flags(wire::Op::kData);
  Frame shortest(64);
  const Frame stu = make_bytes(2, 5);
  wire::emit({pair.b_at_a, pair.a.mac(), {}, false}, header, stu, {}, shortest);
  pair.a.engine.send(shortest);
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 2; }));
  EXPECT_EQ(pair.b.engine.received[0].size(), kHead);
  ASSERT_EQ(pair.b.engine.received[1].size(), kHead + 2) << "the datagram states the length";
  EXPECT_EQ(pair.b.engine.received[1][kHead], stu[0]);
}

TEST(UdpPort, FramesToItselfStayHere) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0");
  auto own = *parse_internet_address("127.0.0.1");
  own.port = end.port->info().udp_port;
  EXPECT_EQ(end.port->find_station(own, now()), end.mac());
  for (unsigned i = 0; i < 500; ++i)
    end.engine.send(frame_of(kData, end.mac(), end.mac(), kHead + i, i));
  while (end.turn() > 0) {
  }
  ASSERT_EQ(end.engine.received.size(), 500U);
  EXPECT_EQ(end.engine.received[499], frame_of(kData, end.mac(), end.mac(), kHead + 499, 499));
  EXPECT_EQ(counter(*end.port, "udp_tx_datagrams"), 0U);
}

TEST(UdpPort, SendsNothingToWhomNobodyKnows) {
  UdpPair pair;
  const Frame memory = make_bytes(512, 1);
  const MacAddr nobody{{0x06, 1, 2, 3, 4, 5}}, everybody{{2, 4, 255, 255, 255, 255}};
  pair.a.engine.send_attached(frame_of(kData, nobody, pair.a.mac(), kHead, 1), memory, 5);
  pair.a.engine.send(frame_of(kData, everybody, pair.a.mac(), 100, 1));
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, 1));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 1; }));
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_unknown"), 2U);
  EXPECT_EQ(pair.a.engine.returned[5], 1U) << "its memory is free all the same";
}

TEST(UdpPort, TellsThatNobodyListens) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0");
  std::uint16_t closed = 0;
  {
    LinkEnd other;
    other.open("udp:127.0.0.1,port=0");
    closed = other.port->info().udp_port;
  }
  auto address = *parse_internet_address("127.0.0.1");
  address.port = closed;
  const MacAddr there = end.port->find_station(address, now()).value();
  const Time limit = now() + 30 * kSecond;
  while (end.port->trouble().empty() && now() < limit) {
    end.engine.send(frame_of(kData, there, end.mac(), 100, 1));
    end.turn();
  }
  EXPECT_NE(end.port->trouble().find("127.0.0.1/" + std::to_string(closed) + " has no socket"),
            std::string::npos)
      << end.port->trouble();
  EXPECT_GT(counter(*end.port, "udp_reports"), 0U);
  EXPECT_EQ(end.port->state(), LinkState::kUp) << "others are reached";
  EXPECT_EQ(end.port->trouble_of(there), end.port->trouble());
  address.port = closed == 1 ? 2 : 1;
  const MacAddr other = end.port->find_station(address, now()).value();
  EXPECT_EQ(end.port->trouble_of(other), "") << "that says nothing of others";
}

// protocol: 13.6
TEST(UdpPort, ADatagramLongerThanTheInterfaceCarriesIsCountedAndExplained) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0");
  LinkEnd peer;
  peer.open("udp:127.0.0.1,port=0");
  const MacAddr there = UdpPair::know(end, peer, "127.0.0.1");
  // The loopback interface has an MTU of 65536, and the room behind a head is longer.
  if (end.port->info().mtu < 65'487) GTEST_SKIP() << "another MTU here";
  end.engine.send(frame_of(kData, there, end.mac(), 14 + 65'510, 1));
  end.engine.send(frame_of(kData, there, end.mac(), 100, 1));
  ASSERT_TRUE(turn_until(end, peer, [&] { return !peer.engine.received.empty(); }));
  EXPECT_EQ(peer.engine.received[0].size(), 100U);
  EXPECT_EQ(counter(*end.port, "udp_tx_too_long"), 1U);
  EXPECT_EQ(end.port->state(), LinkState::kMtu);
  const std::string trouble = end.port->trouble();
  EXPECT_NE(trouble.find("65510 bytes"), std::string::npos) << trouble;
  EXPECT_NE(trouble.find("raise its MTU of 65536, or open the link with mtu=65536"),
            std::string::npos)
      << trouble;
}

// protocol: 13.6
class DoubtfulWay : public testing::TestWithParam<std::string> {};

TEST_P(DoubtfulWay, HasBothSidesToldTheMtuAndTheRemedy) {
  const bool six = GetParam() != "127.0.0.1";
  if (six && !has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  UdpPair pair(GetParam(), ",mtu=9000");
  ASSERT_TRUE(pair.a.port && pair.b.port);
  // What begins a connection is long to find out what arrives, and nobody waits for it then.
  pair.a.engine.send(frame_of(kAnswer, pair.b_at_a, pair.a.mac(), kHead + 8'192, 1));
  pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), kHead, 1));
  ASSERT_TRUE(pair.turn_until([&] { return pair.a.engine.received.size() == 1; }));
  EXPECT_EQ(pair.a.port->trouble_of(pair.b_at_a), "");
  pair.a.engine.received.clear();
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 1; }));
  pair.b.engine.received.clear();
  Frame grant = frame_of(kClearToSend, pair.a_at_b, pair.b.mac(), kHead, 1);
  grant[kParamAt] = std::byte{0};
  grant[kParamAt + 1] = std::byte{13};  // 8 KiB
  pair.b.engine.send(grant);
  ASSERT_TRUE(pair.turn_until([&] { return pair.a.engine.received.size() == 1; }));
  // The other side sends long datagrams, and something short arrives.
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead + 1'024, 1));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 1; }));
  EXPECT_EQ(pair.b.port->trouble_of(pair.a_at_b), "") << "it may be on its way";
  pair.b.port->turn(pair.b.engine, now() + UdpWays::kLate);
  const std::string asked = pair.b.port->trouble_of(pair.a_at_b);
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead + 8'192, 1));
  pair.b.engine.send(grant);
  ASSERT_TRUE(pair.turn_until([&] { return pair.a.engine.received.size() == 2; }));
  const std::string sent = pair.a.port->trouble_of(pair.b_at_a);
  for (const std::string& text : {asked, sent}) {
    EXPECT_NE(text.find(six ? "::1 answers" : "127.0.0.1 answers"), std::string::npos) << text;
    EXPECT_NE(text.find("than this link, which has mtu=9000"), std::string::npos) << text;
    EXPECT_NE(text.find("open the links of both hosts with mtu="), std::string::npos) << text;
  }
  const char* const longest = six ? "'ping -M do -s 8952 ::1'" : "'ping -M do -s 8972 127.0.0.1'";
  EXPECT_NE(asked.find(longest), std::string::npos) << asked;
  EXPECT_NE(sent.find("'ping -M do -s 8232 "), std::string::npos) << sent;
}

// protocol: 13.5
TEST(UdpPort, EachLoopbackAddressHasTheMtuOfTheLoopbackInterface) {
  LinkEnd one, other;
  one.open("udp:127.0.0.1,port=0");
  other.open("udp:127.0.0.2,port=0");
  EXPECT_EQ(other.port->info().mtu, one.port->info().mtu);
}

// protocol: 13.6
TEST(UdpPort, WhatAsksForLongDatagramsIsSeenBehindDataOfItsCall) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  ASSERT_TRUE(pair.a.port && pair.b.port);
  Frame grant = frame_of(kClearToSend, pair.a_at_b, pair.b.mac(), kHead, 1);
  grant[kParamAt] = std::byte{0};
  grant[kParamAt + 1] = std::byte{13};  // 8 KiB
  for (unsigned i = 0; i < 2; ++i)
    pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), kHead + 1'000, 1));
  pair.b.engine.send(grant);
  ASSERT_TRUE(pair.turn_until([&] { return pair.a.engine.received.size() == 3; }));
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead, 1));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 1; }));
  pair.b.port->turn(pair.b.engine, now() + UdpWays::kLate);
  const std::string text = pair.b.port->trouble_of(pair.a_at_b);
  EXPECT_NE(text.find("no long datagram of what it is asked for has come"), std::string::npos)
      << text;
}

// At an MTU of 1500 an STU has 1,024 bytes, which arrive on any way.
TEST(UdpPort, WhoseStusAreShortIsNotInDoubtForWhatItWasAskedFor) {
  UdpPair pair("127.0.0.1", ",mtu=1500");
  ASSERT_TRUE(pair.a.port && pair.b.port);
  Frame grant = frame_of(kClearToSend, pair.a_at_b, pair.b.mac(), kHead, 1);
  grant[kParamAt] = std::byte{0};
  grant[kParamAt + 1] = std::byte{17};  // 128 KiB
  pair.b.engine.send(grant);
  ASSERT_TRUE(pair.turn_until([&] { return pair.a.engine.received.size() == 1; }));
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead + 1'024, 1));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 1; }));
  pair.b.port->turn(pair.b.engine, now() + UdpWays::kLate);
  EXPECT_EQ(pair.b.port->trouble_of(pair.a_at_b), "");
}

INSTANTIATE_TEST_SUITE_P(UdpPort, DoubtfulWay, testing::Values("127.0.0.1", "[::1]"));

// protocol: 13.4
TEST(UdpPort, EachSocketIsAnotherStation) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0");
  const Stranger one(end), other(end);
  const Frame bytes = make_bytes(64, 1);
  for (const Stranger* each : {&one, &other, &one}) ASSERT_TRUE(each->send(bytes));
  const Time limit = now() + 30 * kSecond;
  while (end.engine.received.size() < 3 && now() < limit) end.turn();
  ASSERT_EQ(end.engine.received.size(), 3U);
  const auto source = [&](std::size_t i) { return Bytes(end.engine.received[i]).subspan(6, 6); };
  EXPECT_TRUE(std::ranges::equal(source(0), source(2)));
  EXPECT_FALSE(std::ranges::equal(source(0), source(1)));
}

TEST(UdpPort, TenThousandSourcesDisplaceNoPeer) {
  UdpPair pair;
  const Frame bytes = make_bytes(40, 1);
  unsigned sent = 0;
  // Each socket of this host has a port of its own.
  for (unsigned i = 0; i < 10'000; ++i) {
    const Stranger stranger(pair.a);
    if (stranger.send(bytes)) ++sent;
    pair.a.turn();
  }
  EXPECT_GT(sent, 9'000U);
  EXPECT_EQ(counter(*pair.a.port, "udp_peers"), 1U);
  EXPECT_LE(counter(*pair.a.port, "udp_strangers"), 1'024U);
  EXPECT_GT(counter(*pair.a.port, "udp_displaced"), 0U);
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, 1));
  EXPECT_TRUE(pair.turn_until([&] { return !pair.b.engine.received.empty(); }));
}

// A peer with another UDP port that has connected, and to which no more than the answer went.
// protocol: 13.4
TEST(UdpPort, WhoeverIsAcceptedIsNoStrangerAnyMore) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0");
  const Stranger accepted(end), refused(end);
  const Frame bytes = make_bytes(40, 1);
  std::vector<MacAddr> names;
  for (const Stranger* each : {&accepted, &refused}) {
    ASSERT_TRUE(each->send(bytes));
    ASSERT_GT(end.turn(), 0U);
    MacAddr name;
    std::memcpy(name.octets.data(), end.engine.received.back().data() + 6, 6);
    names.push_back(name);
  }
  const auto answer = [&](const MacAddr& to) { return frame_of(kAnswer, to, end.mac(), 60, 1); };
  end.engine.send(answer(names[0]));
  end.engine.send_to_stranger(answer(names[1]));
  end.turn();
  EXPECT_EQ(counter(*end.port, "udp_peers"), 1U);
  EXPECT_EQ(counter(*end.port, "udp_strangers"), 1U);
  for (unsigned i = 0; i < 1'100; ++i) {
    ASSERT_TRUE(Stranger(end).send(bytes));
    end.turn();
  }
  end.engine.send(answer(names[0]));
  end.engine.send(answer(names[1]));
  end.turn();
  EXPECT_EQ(counter(*end.port, "udp_tx_unknown"), 1U) << "only the refused one is forgotten";
}

// A link with many reports of hosts that are not read yet, as after a flood of forged ones.
struct Reported : UdpPair {
  // More than are read for one call.
  static constexpr unsigned kReports = 300;

  Reported() {
    sockaddr_in closed{};
    closed.sin_family = AF_INET;
    closed.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    {
      LinkEnd other;
      other.open("udp:127.0.0.1,port=0");
      closed.sin_port = htons(other.port->info().udp_port);
    }
    // Each other call tells of the datagram before, so that the last one waits to be told.
    for (unsigned i = 0; i < 2 * kReports + 1; ++i)
      ::sendto(socket_of(*a.port), "", 0, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&closed),
               sizeof closed);
  }
};

// protocol: 13.8
TEST(UdpPort, AFloodOfReportsCostsNoDatagram) {
  Reported pair;
  constexpr unsigned kFrames = 100;
  for (unsigned i = 0; i < kFrames; ++i)
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100 + i % 3, i));
  while (pair.a.turn() > 0) continue;
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == kFrames; }));
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_refused"), 0U);
  EXPECT_GT(counter(*pair.a.port, "udp_reports"), 0U);
  EXPECT_EQ(counter(*pair.a.port, "udp_report_floods"), 1U);
  if (pair.a.port->info().driver.find("gro") != std::string::npos) {
    EXPECT_NE(pair.a.port->info().driver.find("segment"), std::string::npos);
  }
}

// protocol: 13.8
TEST(UdpPort, WhatHasArrivedIsReadDespiteAFloodOfReports) {
  Reported pair;
  pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), 100, 1));
  pair.b.turn();
  EXPECT_EQ(pair.a.turn(), 1U);
  EXPECT_EQ(pair.a.engine.received.size(), 1U);
}

// protocol: 13.8
TEST(UdpPort, ReportsAreHeardAgainAfterAFlood) {
  Reported pair;
  pair.a.turn();
  ASSERT_EQ(counter(*pair.a.port, "udp_report_floods"), 1U);
  const std::uint64_t before = counter(*pair.a.port, "udp_reports");
  pair.b.port.reset();
  const auto send = [&](Time time) {
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, 1));
    pair.a.port->turn(pair.a.engine, time);
    pair.a.port->turn(pair.a.engine, time);
  };
  send(now());
  EXPECT_EQ(counter(*pair.a.port, "udp_reports"), before) << "nobody listens to them";
  send(now() + 2 * kSecond);
  EXPECT_GT(counter(*pair.a.port, "udp_reports"), before);
}

TEST(UdpPort, WhatThisHostItselfForbidsIsRefusedAndToldApart) {
  UdpPair pair;
  const auto everybody = *parse_internet_address("127.255.255.255");
  const MacAddr there = pair.a.port->find_station(everybody, now()).value();
  for (unsigned i = 0; i < 3; ++i) {
    pair.a.engine.send(frame_of(kData, there, pair.a.mac(), 100, i));
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
  }
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 3; }));
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_refused"), 3U);
  EXPECT_EQ(counter(*pair.a.port, "udp_reports"), 0U);
  EXPECT_EQ(counter(*pair.a.port, "udp_report_floods"), 0U);
  EXPECT_NE(pair.a.port->trouble().find("cannot send to 127.255.255.255"), std::string::npos)
      << pair.a.port->trouble();
  const auto another_host = *parse_internet_address("192.0.2.1");
  const MacAddr beyond = pair.a.port->find_station(another_host, now()).value();
  pair.a.engine.send(frame_of(kData, beyond, pair.a.mac(), 100, 1));
  ASSERT_TRUE(pair.turn_until([&] { return counter(*pair.a.port, "udp_tx_refused") == 4U; }));
  EXPECT_NE(pair.a.port->trouble().find(": the link is at 127.0.0.1, which other hosts do not"),
            std::string::npos)
      << pair.a.port->trouble();
}

// The kernel tells of an error in place of what a later call would have done.
TEST(UdpPort, AReportedErrorStopsNothing) {
  UdpPair pair;
  auto closed = *parse_internet_address("127.0.0.1");
  {
    LinkEnd other;
    other.open("udp:127.0.0.1,port=0");
    closed.port = other.port->info().udp_port;
  }
  const MacAddr nobody = pair.a.port->find_station(closed, now()).value();
  constexpr unsigned kFrames = 200;
  const Frame memory = make_bytes(1'000, 1);
  for (unsigned i = 0; i < kFrames; ++i) {
    pair.a.engine.send(frame_of(kData, nobody, pair.a.mac(), 100, i));
    for (unsigned each = 0; each < 3; ++each)
      pair.a.engine.send_attached(frame_of(kData, pair.b_at_a, pair.a.mac(), kHead, i), memory, 1);
  }
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 3 * kFrames; }));
  EXPECT_GT(counter(*pair.a.port, "udp_reports"), 0U);
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_refused"), 0U);
  EXPECT_EQ(counter(*pair.a.port, "tx_dropped"), 0U);
  EXPECT_EQ(pair.a.engine.returned[1], 3 * kFrames);
  if (pair.a.port->info().driver.find("segment") != std::string::npos) {
    EXPECT_LT(counter(*pair.a.port, "udp_tx_calls"), 3 * kFrames) << "it still segments";
  }
}

// Any length and content, also several joined by the kernel.
TEST(UdpPort, PassesOnWhateverStrangersSend) {
  LinkEnd end;
  end.open("udp:127.0.0.1,port=0");
  const Stranger stranger(end);
  std::mt19937 dice(1);
  std::vector<Frame> sent;
  for (unsigned i = 0; i < 400; ++i) {
    const std::size_t length = i < 100 ? i : dice() % 3'000;
    sent.push_back(make_bytes(length, i));
    ASSERT_TRUE(stranger.send(sent.back()));
    end.turn();
  }
  const Time limit = now() + 30 * kSecond;
  while (end.engine.received.size() < sent.size() && now() < limit) end.turn();
  ASSERT_EQ(end.engine.received.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i)
    ASSERT_TRUE(std::ranges::equal(after_ethernet(end.engine.received[i]), sent[i])) << i;
  EXPECT_EQ(counter(*end.port, "udp_strangers"), 1U);
  EXPECT_EQ(counter(*end.port, "udp_peers"), 0U);
}

// What a packet must have that another program reads: lengths, addresses, ports, checksums.
void expect_whole_packet(const Frame& seen, bool ipv6, Bytes data, std::uint16_t from,
                         std::uint16_t to) {
  const std::size_t ip_head = ipv6 ? 40 : 20, udp_at = 14 + ip_head;
  ASSERT_EQ(seen.size(), udp_at + 8 + data.size());
  const auto word = [&](std::size_t at) { return wire::load16(&seen[at]); };
  EXPECT_EQ(word(12), ipv6 ? 0x86dd : 0x0800);
  EXPECT_EQ(word(udp_at), from);
  EXPECT_EQ(word(udp_at + 2), to);
  EXPECT_EQ(word(udp_at + 4), 8 + data.size());
  EXPECT_EQ(word(14 + (ipv6 ? 4 : 2)), seen.size() - (ipv6 ? udp_at : 14));
  EXPECT_EQ(seen[14 + (ipv6 ? 6 : 9)], std::byte{17});
  EXPECT_TRUE(std::ranges::equal(Bytes(seen).subspan(udp_at + 8), data));
  // A sum over all that a checksum covers, and itself, is 0xffff.
  const auto sum = [&](std::size_t begin, std::uint32_t total) {
    for (std::size_t at = begin; at < seen.size(); at += 2)
      total += std::to_integer<unsigned>(seen[at]) << 8 |
               (at + 1 < seen.size() ? std::to_integer<unsigned>(seen[at + 1]) : 0);
    while (total > 0xffff) total = (total & 0xffff) + (total >> 16);
    return total;
  };
  EXPECT_EQ(sum(udp_at - (ipv6 ? 32 : 8), static_cast<std::uint32_t>(17 + 8 + data.size())),
            0xffffU);
  if (ipv6) return;
  std::uint32_t head = 0;
  for (std::size_t at = 14; at < udp_at; at += 2) head += word(at);
  EXPECT_EQ((head & 0xffff) + (head >> 16), 0xffffU);
}

void expect_packets_in_a_trace(bool ipv6) {
  UdpPair pair(ipv6 ? "[::1]" : "127.0.0.1");
  RecordingTap at_a, at_b;
  pair.a.port->set_tap(&at_a);
  pair.b.port->set_tap(&at_b);
  const Frame memory = make_bytes(777, 3);
  const Frame head = frame_of(kData, pair.b_at_a, pair.a.mac(), kHead, 1);
  const Frame control = frame_of(kClearToSend, pair.b_at_a, pair.a.mac(), 60, 2);
  pair.a.engine.send_attached(head, memory, 1);
  pair.a.engine.send(control);
  pair.a.engine.send(frame_of(kData, MacAddr{{6, 1, 1, 1, 1, 1}}, pair.a.mac(), 100, 3));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() == 2; }));
  const std::uint16_t a = pair.a.port->info().udp_port, b = pair.b.port->info().udp_port;
  Frame data(head.begin() + 14, head.end());
  data.insert(data.end(), memory.begin(), memory.end());
  ASSERT_EQ(at_a.sent.size(), 2U) << "nothing of what no station gets";
  ASSERT_EQ(at_b.received.size(), 2U);
  for (const Frame* seen : {&at_a.sent[0], &at_b.received[0]})
    expect_whole_packet(*seen, ipv6, data, a, b);
  for (const Frame* seen : {&at_a.sent[1], &at_b.received[1]})
    expect_whole_packet(*seen, ipv6, Bytes(control).subspan(14, 40), a, b);
  EXPECT_EQ(destination(at_a.sent[0]), pair.b_at_a) << "the link's name for it";
  EXPECT_EQ(destination(at_b.received[0]), pair.b.mac());
}

TEST(UdpPort, ATraceHasPacketsOfIp) {
  expect_packets_in_a_trace(false);
}

TEST(UdpPort, ATraceHasPacketsOfIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  expect_packets_in_a_trace(true);
}

struct BadUdpLink {
  const char* text;
  const char* says;
};
class BadUdpLinks : public ::testing::TestWithParam<BadUdpLink> {};

TEST_P(BadUdpLinks, AreRefusedWithCauseAndRemedy) {
  std::string error;
  EXPECT_EQ(open_link(GetParam().text, error), nullptr);
  EXPECT_NE(error.find(GetParam().says), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    Port, BadUdpLinks,
    ::testing::Values(
        BadUdpLink{"udp:no-such-host", "neither an address nor an interface"},
        BadUdpLink{"udp:10.0.0.300", "is no IPv4 address: after udp: stands 10.0.0.5"},
        BadUdpLink{"udp:224.0.0.1", "is an address of many hosts"},
        BadUdpLink{"udp:[ff02::1]", "is an address of many hosts"},
        BadUdpLink{"udp:[2001:db8::5", "is no IPv6 address"},
        BadUdpLink{"udp:[10.0.0.5]", "only these stand in brackets"},
        BadUdpLink{"udp:10.0.0.5/24",
                   "no prefix length, and its UDP port is an option: write udp:10.0.0.5,"},
        BadUdpLink{"udp:localhost", "write udp:127.0.0.1"},
        BadUdpLink{"udp:[fe80::1]", "needs its interface"},
        BadUdpLink{"udp:192.0.2.77", "no interface of this host has the address"},
        BadUdpLink{"udp:127.0.0.1,port=0,mtu=387", "388 (over IPv6 from 408) to 65640"},
        BadUdpLink{"udp:127.0.0.1,port=0,mtu=359", "388 (over IPv6 from 408)"},
        BadUdpLink{"udp:[::1],port=0,mtu=400", "388 (over IPv6 from 408)"},
        BadUdpLink{"udp:127.0.0.1,port=65536", "a UDP port"},
        BadUdpLink{"udp:127.0.0.1,mac=02:00:00:00:00:01",
                   "there are mtu, copy, queues, port, congestion"}));

TEST(UdpPort, CongestionIsControlledWhereTheLinkSaysSo) {
  for (const std::string option : {"", ",congestion=auto", ",congestion=off", ",congestion=on"}) {
    LinkEnd end;
    end.open("udp:127.0.0.1,port=0" + option);
    const PortInfo& info = end.port->info();
    EXPECT_EQ(info.routed, option == ",congestion=on");
    EXPECT_EQ(info.marks, option != ",congestion=off");
    const bool by_route = option.empty() || option == ",congestion=auto";
    ASSERT_EQ(info.ways != nullptr, by_route) << option;
    if (!by_route) continue;
    const auto neighbour = parse_internet_address("127.0.0.2").value();
    const MacAddr station = end.port->find_station(neighbour, now()).value();
    EXPECT_FALSE(info.ways->is_shared(station)) << "it is on this host";
  }
}

// A router marks what it forwards. This program sends datagrams that are marked, and sees which of
// a link's could be.
class Router {
 public:
  Router(const LinkEnd& link, bool over_ipv6) : ipv6_(over_ipv6) {
    const int on = 1;
    ::setsockopt(fd_, ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP, ipv6_ ? IPV6_RECVTCLASS : IP_RECVTOS, &on,
                 sizeof on);
    auto address = own(link.port->info().udp_port);
    ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    socklen_t length = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    at_link_ =
        link.port->find_station(*from_socket_address(reinterpret_cast<sockaddr*>(&address)), now())
            .value();
  }
  ~Router() { ::close(fd_); }
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  [[nodiscard]] MacAddr at_link() const { return at_link_; }
  void send(int ecn) const {
    const Frame bytes = make_bytes(100, 1);
    ::setsockopt(fd_, ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP, ipv6_ ? IPV6_TCLASS : IP_TOS, &ecn,
                 sizeof ecn);
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), 0), 100);
  }
  // That of the next datagram. -1: there is none.
  [[nodiscard]] int receive() const {
    std::array<std::byte, 2'000> bytes;
    alignas(cmsghdr) std::array<std::byte, 64> control;
    iovec piece{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(fd_, &message, MSG_DONTWAIT) < 0) return -1;
    const cmsghdr* const said = CMSG_FIRSTHDR(&message);
    return said == nullptr ? -1 : *CMSG_DATA(said);
  }

 private:
  [[nodiscard]] sockaddr_storage own(std::uint16_t port) const {
    sockaddr_storage name{};
    auto address = parse_internet_address(ipv6_ ? "::1" : "127.0.0.1").value();
    address.port = port;
    to_socket_address(address, ipv6_ ? AF_INET6 : AF_INET, name);
    return name;
  }
  const bool ipv6_;
  const int fd_ = ::socket(ipv6_ ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  MacAddr at_link_;
};

// `ipv6`: the router's packets.
void expect_marks(const std::string& link, bool ipv6) {
  SCOPED_TRACE(link);
  LinkEnd end;
  end.open(link + ",port=0");
  EXPECT_TRUE(end.port->info().marks);
  end.port->info().ways->tell_marks();
  const Router router(end, ipv6);
  constexpr int kNot = 0, kMayBe = 2, kMarked = 3;
  for (const int ecn : {kMarked, kNot, kMayBe, kMarked}) router.send(ecn);
  const Time limit = now() + 30 * kSecond;
  while (end.engine.received.size() < 4 && now() < limit) end.turn();
  EXPECT_EQ(end.engine.received.size(), 4U);
  EXPECT_EQ(end.engine.marked, 2U);

  const auto of = [&](unsigned seed) {
    return frame_of(kData, router.at_link(), end.mac(), 200, seed);
  };
  end.engine.send(of(1));
  for (unsigned seed = 2; seed < 5; ++seed) end.engine.send_to_be_marked(of(seed));
  end.engine.send(of(5));
  end.turn();
  // Those that may be marked leave together.
  std::array<unsigned, 4> got{};
  for (int i = 0; i < 5; ++i) {
    const int ecn = router.receive();
    ASSERT_TRUE(ecn == kNot || ecn == kMayBe) << ecn;
    ++got[static_cast<std::size_t>(ecn)];
  }
  EXPECT_EQ(got[kNot], 2U);
  EXPECT_EQ(got[kMayBe], 3U);
}

// protocol: 13.22
TEST(UdpPort, TellsWhatRoutersHaveMarkedAndWhatTheyMayMark) {
  expect_marks("udp:127.0.0.1", false);
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  expect_marks("udp:[::1]", true);
  expect_marks("udp:", false);
  expect_marks("udp:", true);
}

TEST(UdpPort, AnAddressInUseIsRefused) {
  LinkEnd first;
  first.open("udp:127.0.0.1,port=0");
  std::string error;
  EXPECT_EQ(open_link("udp:127.0.0.1,port=" + std::to_string(first.port->info().udp_port), error),
            nullptr);
  EXPECT_NE(error.find("another program has this UDP port"), std::string::npos) << error;
}

}  // namespace
}  // namespace stp::port::udp_port_test
