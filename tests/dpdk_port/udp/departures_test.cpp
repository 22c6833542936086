// SPDX-License-Identifier: BSD-3-Clause
// Stations that answer no ARP, whether they have shown that they are there or not: what the kernel
// keeps for them takes no room from others.
#include "dpdk_port/udp/departures.h"

#include <gtest/gtest.h>

#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/network_namespace.h"
#include "tests/dpdk_port/udp/socket_of.h"

namespace stp::port::departures_test {
namespace {

constexpr std::size_t kLength = 1'400;
constexpr std::byte kData{0x1b << 3};

class WhereNobodyAnswersArp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!space_.missing().empty()) GTEST_SKIP() << space_.missing();
    ASSERT_TRUE(NetworkNamespace::make_veth(1500));
    for (const char* const each : {"link set up dev lo", "address add 10.9.0.1/16 dev stp0",
                                   "address add 10.9.0.2/32 dev lo"})
      ASSERT_TRUE(NetworkNamespace::ip(each));
    a_.open("udp:10.9.0.1");
    b_.open("udp:10.9.0.2");
  }
  MacAddr station(unsigned number) {
    return a_.port->find_station(InternetAddress::of(Ipv4{0x0a09'0000 + number}, 0), now()).value();
  }
  void send(const MacAddr& to, unsigned count, Presence presence = Presence::kProven) {
    for (unsigned i = 0; i < count; ++i) {
      Frame frame = make_frame(to, a_.mac(), kLength, i);
      frame[14] = kData;
      if (presence == Presence::kProven)
        a_.engine.send(std::move(frame));
      else if (presence == Presence::kNamed)
        a_.engine.send_to_silent(std::move(frame));
      else
        a_.engine.send_to_stranger(std::move(frame));
    }
  }
  // More than the buffer has room for, but for what each may have.
  void fill(Presence presence = Presence::kProven) { fill(0, kAbsent, presence); }
  void fill(unsigned first, unsigned end, Presence presence = Presence::kProven) {
    for (unsigned each = first; each < end; ++each) {
      send(station(0x100 + each), 3 * 64, presence);
      for (unsigned turn = 0; turn < 8 && a_.engine.waiting() > 0; ++turn) a_.turn();
    }
  }
  std::uint64_t count(const std::string& name) { return counter(*a_.port, name); }

  static constexpr unsigned kAbsent = 120;
  NetworkNamespace space_;
  LinkEnd a_, b_;
};

TEST_F(WhereNobodyAnswersArp, OthersGoOn) {
  fill();
  EXPECT_EQ(a_.engine.waiting(), 0U);
  EXPECT_EQ(count("tx_kept") + count("tx_dropped"), 0U);
  EXPECT_GT(count("udp_tx_silent"), 0U);
  const auto dropped = count("udp_tx_silent");
  send(station(2), 200);
  ASSERT_TRUE(turn_until(a_, b_, [&] { return b_.engine.received.size() >= 200; }));
  for (unsigned i = 0; i < 200; ++i) {
    const Frame whole = make_frame(b_.mac(), station(2), kLength, i);
    const Frame& got = b_.engine.received[i];
    EXPECT_TRUE(std::equal(got.begin() + 15, got.end(), whole.begin() + 15)) << i;
  }
  EXPECT_EQ(count("tx_kept") + count("tx_dropped"), 0U);
  EXPECT_EQ(count("udp_tx_silent"), dropped);
}

TEST_F(WhereNobodyAnswersArp, WhoAnswersAgainIsSentToAgain) {
  fill();
  const MacAddr last = station(0x100 + kAbsent - 1);
  const auto dropped = count("udp_tx_silent");
  send(last, 20);
  a_.turn();
  EXPECT_GE(count("udp_tx_silent"), dropped + 19) << "one may ask again";
  ASSERT_TRUE(
      NetworkNamespace::ip("neighbor replace 10.9.1.119 lladdr 02:00:00:00:00:09 dev stp0"));
  a_.ahead = Departures::kKeptMost;
  const auto lost = count("udp_tx_silent"), before = count("udp_tx_datagrams");
  send(last, 10);
  a_.turn();
  EXPECT_EQ(count("udp_tx_silent"), lost);
  EXPECT_EQ(count("udp_tx_datagrams"), before + 10);
}

// As with small buffers, and many that answer nothing: what has left for a station lately counts.
TEST_F(WhereNobodyAnswersArp, WithoutRoomToAskOthersGoOn) {
  fill(0, kAbsent / 3);
  send(station(2), 1);
  a_.turn();
  const int least = 0;
  for (int fd = 0; fd < kMostDescriptors; ++fd)
    if (connection_of(fd, a_.port->info().udp_port) == Connected::kToNobody)
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  fill(kAbsent / 3, kAbsent);
  send(station(2), 200);
  ASSERT_TRUE(turn_until(a_, b_, [&] { return b_.engine.received.size() >= 201; }));
  EXPECT_EQ(count("tx_kept") + count("tx_dropped"), 0U);
}

// Who dials, or is answered, for the first time.
TEST_F(WhereNobodyAnswersArp, NeitherDialsNorAnswersToOthersAreLost) {
  for (const auto presence : {Presence::kNamed, Presence::kClaimed}) {
    fill(presence);
    const auto dropped = count("udp_tx_silent");
    EXPECT_GT(dropped, 0U);
    b_.engine.received.clear();
    send(station(2), 20, presence);
    ASSERT_TRUE(turn_until(a_, b_, [&] { return b_.engine.received.size() >= 20; }));
    EXPECT_EQ(count("udp_tx_silent"), dropped);
    // One that is looked for gets one datagram meanwhile, of which it gets to know if it is there.
    const auto sent = count("udp_tx_datagrams");
    send(station(0x300), 3, presence);
    a_.turn();
    EXPECT_EQ(count("udp_tx_datagrams"), sent + 1);
    EXPECT_EQ(count("udp_tx_silent"), dropped + 2);
  }
}

}  // namespace
}  // namespace stp::port::departures_test
