// SPDX-License-Identifier: BSD-3-Clause
// Linux interfaces: a veth pair in a private network namespace.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/owners.h"
#include "libst/os/unique_fd.h"
#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/network_namespace.h"

namespace stp::port {
namespace {

class Iface : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!space.missing().empty()) GTEST_SKIP() << space.missing();
  }
  void open(unsigned mtu, const std::string& options_a = "", const std::string& options_b = "") {
    ASSERT_TRUE(NetworkNamespace::make_veth(mtu));
    a.open("iface:stp0" + options_a);
    b.open("iface:stp1" + options_b);
  }
  static std::string error_of(const std::string& link) {
    std::string error;
    EXPECT_FALSE(open_link(link, error));
    return error;
  }
  [[nodiscard]] bool has_arrived(const Frame& frame) const {
    const auto& frames = b.engine.received;
    return std::find(frames.begin(), frames.end(), frame) != frames.end();
  }

  NetworkNamespace space;
  LinkEnd a, b;
};

TEST_F(Iface, TakesAddressesAndMtuFromTheInterface) {
  ASSERT_TRUE(NetworkNamespace::make_veth(9000));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 address 02:00:00:00:0a:01"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  a.open("iface:stp0");
  const PortInfo& info = a.port->info();
  EXPECT_EQ(to_string(info.mac), "02:00:00:00:0a:01");
  EXPECT_EQ(info.address, parse_ipv4("10.9.0.1"));
  EXPECT_EQ(info.mtu, 9000U);
  EXPECT_EQ(info.max_stu, 13U);
  EXPECT_EQ(info.driver, "af_packet");
  EXPECT_TRUE(info.attaches);
  EXPECT_EQ(info.megabits, 0U) << "a pair of interfaces has no line, whatever the kernel names";
}

TEST_F(Iface, CarriesSmallFrames) {
  open(1500);
  expect_frames_arrive_in_order(a, b, 60, 2000);
  expect_frames_arrive_in_order(b, a, 1514, 2000);
}

TEST_F(Iface, CarriesJumboFrames) {
  open(9000);
  expect_frames_arrive_in_order(a, b, 9014, 500);
}

TEST_F(Iface, AttachedMemoryArrivesAndEachTokenComesBackOnce) {
  open(9000);
  expect_attached_memory_arrives(a, b, 8192, 300);
  expect_attached_memory_arrives(b, a, 256, 300);
}

TEST_F(Iface, WithCopyingAllArrives) {
  open(9000, ",copy=1", ",copy=1");
  EXPECT_FALSE(a.port->info().attaches);
  expect_attached_memory_arrives(a, b, 8192, 100);
}

Frame with_tag(Frame frame, unsigned tag) {
  const Frame bytes{std::byte{0x81}, std::byte{0x00}, std::byte(tag >> 8), std::byte(tag & 0xff)};
  frame.insert(frame.begin() + 12, bytes.begin(), bytes.end());
  return frame;
}

// What a program such as tcpdump sees of the frames that go out on an interface.
class Outgoing {
 public:
  explicit Outgoing(const char* interface) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Outgoing() { ::close(fd_); }
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  // The frames of STP that have been seen since the last call.
  unsigned count() {
    unsigned seen = 0;
    std::array<std::byte, 2048> frame{};
    sockaddr_ll from{};
    for (;;) {
      socklen_t size = sizeof from;
      if (::recvfrom(fd_, frame.data(), frame.size(), MSG_DONTWAIT,
                     reinterpret_cast<sockaddr*>(&from), &size) < 0)
        return seen;
      seen += from.sll_pkttype == PACKET_OUTGOING && from.sll_protocol == htons(0x8181) ? 1 : 0;
    }
  }

 private:
  const int fd_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
};

TEST_F(Iface, OthersSeeWhatItSendsOnlyThroughTheQueueingDiscipline) {
  open(1500, "", ",qdisc=1");
  Outgoing of_a("stp0"), of_b("stp1");
  constexpr unsigned kFrames = 20;
  expect_frames_arrive_in_order(a, b, 200, kFrames);
  EXPECT_EQ(of_a.count(), 0U);
  expect_frames_arrive_in_order(b, a, 200, kFrames);
  EXPECT_EQ(of_b.count(), kFrames);
  expect_attached_memory_arrives(b, a, 1024, 100);
}

TEST_F(Iface, TheQueueingDisciplineIsForItsOwnSocketOnly) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  EXPECT_NE(error_of("iface:stp0,driver=af_xdp,qdisc=1").find("qdisc= is for driver=af_packet"),
            std::string::npos);
  EXPECT_NE(error_of("iface:stp0,qdisc=yes").find("give 0 or 1"), std::string::npos);
}

TEST_F(Iface, TaggedFramesArriveTagged) {
  open(1500, ",vlan=7", ",vlan=7");
  const Frame frame = with_tag(make_frame(b.mac(), a.mac(), 200), 7);
  a.engine.send(frame);
  EXPECT_TRUE(turn_until(a, b, [&] { return has_arrived(frame); }));
}

// protocol: 2.12
TEST_F(Iface, FramesOfOtherVlansAreNotHeard) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  a.open("iface:stp0");
  for (const std::string vlan : {"", ",vlan=20"}) {
    SCOPED_TRACE(vlan);
    b.open("iface:stp1" + vlan);
    ASSERT_TRUE(turn_until(a, b, [&] { return a.port->link_up() && b.port->link_up(); }));
    const Frame bare = make_frame(b.mac(), a.mac(), 200, 1);
    const Frame heard = vlan.empty() ? with_tag(bare, 0x8000) : with_tag(bare, 0x6014);
    a.engine.send(with_tag(bare, 10));
    a.engine.send(with_tag(bare, 0xf00a));
    a.engine.send(with_tag(with_tag(bare, 20), 10));  // never gets past the kernel's filter
    a.engine.send(vlan.empty() ? with_tag(bare, 20) : bare);
    a.engine.send(heard);  // with a priority
    EXPECT_TRUE(turn_until(a, b, [&] { return has_arrived(heard); }));
    EXPECT_EQ(b.engine.received, std::vector<Frame>{heard});
    EXPECT_EQ(counter(*b.port, "rx_other_vlan"), 3U);
    b.port.reset();
    b.engine.received.clear();
  }
}

// Other frames that the host sends and receives do not reach the ring.
TEST_F(Iface, HearsOnlyStpInBothFormsAndArp) {
  open(1500);
  ASSERT_TRUE(turn_until(a, b, [&] { return a.port->link_up() && b.port->link_up(); }));
  const auto with_type = [&](std::uint8_t high, std::uint8_t low, unsigned seed) {
    Frame frame = make_frame(b.mac(), a.mac(), 200, seed);
    frame[12] = std::byte{high};
    frame[13] = std::byte{low};
    return frame;
  };
  Frame snap = with_type(0, 186, 1);
  const std::array<std::uint8_t, 8> header{0xaa, 0xaa, 0x03, 0, 0, 0, 0x81, 0x81};
  std::transform(header.begin(), header.end(), snap.begin() + 14,
                 [](std::uint8_t octet) { return std::byte{octet}; });
  Frame other_snap = snap;
  other_snap[21] = std::byte{0x82};
  constexpr unsigned kOthers = 20'000;  // more than the ring has places
  for (unsigned i = 0; i < kOthers / 2; ++i) {
    a.engine.send(with_type(0x08, 0x00, i));
    a.engine.send(with_type(0x86, 0xdd, i));
  }
  a.engine.send(other_snap);
  while (a.turn() > 0) {
  }
  a.engine.send(snap);
  const Frame last = make_frame(b.mac(), a.mac(), 200, 7);
  a.engine.send(last);
  EXPECT_TRUE(turn_until(a, b, [&] { return has_arrived(last); }));
  EXPECT_EQ(b.engine.received, (std::vector<Frame>{snap, last}));
  EXPECT_EQ(counter(*b.port, "link_rx_packets"), 2U);
  EXPECT_EQ(counter(*b.port, "link_rx_missed"), 0U);
}

TEST_F(Iface, FindsItsPeerByArp) {
  open(1500, ",address=10.9.0.1/24", ",address=10.9.0.2/24");
  expect_both_ends_resolve(a, *parse_ipv4("10.9.0.1"), b, *parse_ipv4("10.9.0.2"));
}

TEST_F(Iface, TheKernelAnswersForItsOwnAddress) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.2/24 dev stp1"));
  a.open("iface:stp0,address=10.9.0.1/24");
  b.open("iface:stp1");
  const Ipv4 peer = *parse_ipv4("10.9.0.2");
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->resolve(peer, now()).has_value(); }));
  EXPECT_EQ(a.port->resolve(peer, now()), b.mac());
  EXPECT_EQ(counter(*b.port, "arp_answers_sent"), 0U);
}

TEST_F(Iface, AMacOfOurChoiceLeavesTheInterfaceItsOwn) {
  open(1500, ",mac=02:00:00:00:00:77");
  EXPECT_EQ(to_string(a.mac()), "02:00:00:00:00:77");
  expect_frames_arrive_in_order(b, a, 100, 50);
  std::string error;
  const auto other = open_link("iface:stp0", error);
  ASSERT_TRUE(other) << error;
  EXPECT_NE(to_string(other->info().mac), "02:00:00:00:00:77");
}

TEST_F(Iface, LinkStateFollowsTheInterface) {
  open(1500);
  // The kernel reports a change of the carrier with a delay.
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->link_up(); }));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 down"));
  EXPECT_TRUE(turn_until(a, b, [&] { return !a.port->link_up(); }));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 up"));
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->link_up(); }));
  expect_frames_arrive_in_order(a, b, 60, 10);
}

TEST_F(Iface, ALinkThatIsDownHoldsUpNobody) {
  open(1500);
  for (const char* end : {"stp0", "stp1"}) {
    SCOPED_TRACE(end);
    ASSERT_TRUE(NetworkNamespace::ip(std::string("link set ") + end + " down"));
    // More than the kernel's ring holds.
    for (unsigned i = 0; i < 10'000; ++i) a.engine.send(make_frame(b.mac(), a.mac(), 60));
    const Time start = now();
    for (Time t = start; a.engine.waiting() > 0; t += kMillisecond) {
      ASSERT_LT(now() - start, 20 * kSecond);
      a.port->turn(a.engine, t);
    }
    ASSERT_TRUE(NetworkNamespace::ip(std::string("link set ") + end + " up"));
  }
  const Frame last = make_frame(b.mac(), a.mac(), 61);
  // The first frame may still find the ring full. Sending it makes the kernel check the ring again.
  EXPECT_TRUE(turn_until(a, b, [&] {
    if (a.engine.waiting() == 0) a.engine.send(last);
    return has_arrived(last);
  }));
}

TEST_F(Iface, AnInterfaceThatIsRemovedTakesNothingDownWithIt) {
  open(1500);
  ASSERT_TRUE(NetworkNamespace::ip("link delete stp0"));
  // The kernel takes it down before it removes it.
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->state() == LinkState::kGone; }));
  EXPECT_FALSE(a.port->link_up());
  const Frame memory = make_bytes(1024, 1);
  for (RegionId i = 1; i <= 100; ++i) {
    a.engine.send_attached(make_frame(b.mac(), a.mac(), 54), memory, i);
  }
  const Time start = now();
  for (Time t = start; t < start + kSecond; t += kMillisecond) a.port->turn(a.engine, t);
  EXPECT_EQ(a.engine.returned.size(), 100U);
}

// The kernel keeps a frame that the device does not accept before all others in the ring.
TEST_F(Iface, AFrameThatTheOtherEndIsTooNarrowForHoldsUpNoShorterOne) {
  open(9000);
  expect_frames_arrive_in_order(a, b, 60, 1);  // both are up
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 mtu 1500"));
  const Frame long_one = make_frame(b.mac(), a.mac(), 9014, 1);
  for (unsigned i = 0; i < 3; ++i) {
    a.engine.send(long_one);
    a.engine.send(make_frame(b.mac(), a.mac(), 8014, i));
    expect_frames_arrive_in_order(a, b, 1514, 20);
  }
  EXPECT_FALSE(has_arrived(long_one));
  EXPECT_EQ(counter(*a.port, "link_tx_refused"), 6U);
  EXPECT_NE(a.port->trouble().find("frames with 8000 bytes or more do not leave"),
            std::string::npos)
      << a.port->trouble();
  EXPECT_NE(a.port->trouble().find("ip link set DEVICE mtu 9000"), std::string::npos);
  EXPECT_TRUE(a.port->link_up());

  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 mtu 9000"));
  EXPECT_TRUE(turn_until(a, b, [&] {
    if (a.engine.waiting() == 0) a.engine.send(long_one);
    return has_arrived(long_one) && a.port->trouble().empty();
  }));
}

TEST_F(Iface, FramesTooLongForAnMtuThatWasLoweredAreCountedAndTheOthersSent) {
  open(9000);
  expect_frames_arrive_in_order(a, b, 60, 1);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 1500"));
  for (unsigned i = 0; i < 5'000; ++i) {  // more than the ring holds
    a.engine.send(make_frame(b.mac(), a.mac(), 9014, i));
  }
  expect_frames_arrive_in_order(a, b, 1514, 20);
  EXPECT_EQ(counter(*a.port, "link_tx_refused"), 5'000U);
  EXPECT_NE(a.port->trouble(), "");
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 9000"));
  expect_frames_arrive_in_order(a, b, 9014, 20);
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->trouble().empty(); }));
}

// A thread that sleeps on the socket must not be woken repeatedly.
TEST_F(Iface, AnInterfaceThatIsDownOrGoneWakesNobodyAndIsTakenUpAgain) {
  open(1500);
  expect_frames_arrive_in_order(a, b, 60, 10);
  const auto wakes = [&] {
    pollfd waker{.fd = a.port->wake_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&waker, 1, 0) > 0;
  };
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  EXPECT_TRUE(turn_until(a, b, [&] { return !a.port->trouble().empty() && !wakes(); }));
  EXPECT_FALSE(a.port->link_up());
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 up"));
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->trouble().empty(); }));
  expect_frames_arrive_in_order(a, b, 60, 10);

  ASSERT_TRUE(NetworkNamespace::ip("link delete stp0"));
  EXPECT_TRUE(turn_until(a, b, [&] { return !a.port->trouble().empty() && !wakes(); }));
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  expect_frames_arrive_in_order(a, b, 60, 10);  // both interfaces are used again
  expect_frames_arrive_in_order(b, a, 60, 10);  // and the links keep their addresses
  EXPECT_NE(a.port->trouble().find("another MAC address"), std::string::npos);
  EXPECT_TRUE(turn_until(a, b, [&] { return !wakes(); }));
}

TEST_F(Iface, ItsStateIsWhatTheKernelTells) {
  open(9000);
  const auto becomes = [&](LinkState state, const std::string& words) {
    return turn_until(a, b, [&] {
      return a.port->state() == state && a.port->trouble().find(words) != std::string::npos &&
             a.port->trouble().empty() == words.empty();
    });
  };
  EXPECT_TRUE(becomes(LinkState::kUp, ""));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 down"));
  EXPECT_TRUE(becomes(LinkState::kNoCarrier, "check the cable"));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 up"));
  EXPECT_TRUE(becomes(LinkState::kUp, ""));
  // Before any frame has been sent.
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 1500"));
  EXPECT_TRUE(becomes(LinkState::kMtu, "ip link set stp0 mtu 9000"));
  EXPECT_TRUE(a.port->link_up());
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 9000"));
  EXPECT_TRUE(becomes(LinkState::kUp, ""));
  const std::string mac = to_string(a.mac());
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 address 02:00:00:00:0a:55"));
  EXPECT_TRUE(becomes(LinkState::kMac, "ip link set stp0 address " + mac));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 address " + mac));
  EXPECT_TRUE(becomes(LinkState::kUp, ""));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  EXPECT_TRUE(becomes(LinkState::kDown, "ip link set stp0 up"));
  ASSERT_TRUE(NetworkNamespace::ip("link delete stp0"));
  EXPECT_TRUE(becomes(LinkState::kGone, "has gone"));
}

TEST_F(Iface, AddressesThatTheInterfaceIsGivenLaterAreItsOwn) {
  open(1500, "", ",address=10.9.0.2/24");
  EXPECT_EQ(a.port->info().address, std::nullopt);
  const auto becomes = [&](std::optional<Ipv4> address) {
    return turn_until(a, b, [&] { return a.port->info().address == address; });
  };
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  EXPECT_TRUE(becomes(parse_ipv4("10.9.0.1")));
  EXPECT_EQ(a.port->resolve(*parse_ipv4("10.9.0.1"), now()), a.mac());
  ASSERT_TRUE(NetworkNamespace::ip("address flush dev stp0"));
  EXPECT_TRUE(becomes(std::nullopt));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.3/24 dev stp0"));
  EXPECT_TRUE(becomes(parse_ipv4("10.9.0.3")));
  // The address in the link string is kept.
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.4/24 dev stp1"));
  const auto later = now() + 300 * kMillisecond;
  EXPECT_TRUE(turn_until(a, b, [&] { return now() > later; }));
  EXPECT_EQ(b.port->info().address, parse_ipv4("10.9.0.2"));
}

TEST_F(Iface, AnAddressWithALabelIsOneOfItsInterface) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0 label stp0:1"));
  ASSERT_TRUE(NetworkNamespace::ip("link property add dev stp0 altname other0"));
  a.open("iface:stp0");
  EXPECT_EQ(a.port->info().address, parse_ipv4("10.9.0.1"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.2/24 dev stp1 label stp1:lan"));
  b.open("iface:stp1");
  EXPECT_EQ(b.port->info().address, parse_ipv4("10.9.0.2"));
  ASSERT_TRUE(NetworkNamespace::ip("address flush dev stp1"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.4/24 dev stp1 label stp1:4"));
  EXPECT_TRUE(turn_until(a, b, [&] { return b.port->info().address == parse_ipv4("10.9.0.4"); }));
  a.port.reset();
  a.open("iface:other0");
  EXPECT_EQ(a.port->info().address, parse_ipv4("10.9.0.1"));
}

TEST_F(Iface, AnAlternativeNameMayBeLongerThanOthers) {
  const std::string name = "enx-port-3-of-the-card-in-slot-7";
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  // Not the one whose name the first characters are.
  ASSERT_TRUE(NetworkNamespace::ip("link property add dev stp1 altname " + name.substr(0, 15)));
  EXPECT_NE(error_of("iface:" + name).find("no such interface"), std::string::npos);
  EXPECT_TRUE(absence_of(name));
  ASSERT_TRUE(NetworkNamespace::ip("link property add dev stp0 altname " + name));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  EXPECT_FALSE(absence_of(name));
  a.open("iface:" + name);
  b.open("iface:stp1");
  EXPECT_EQ(a.port->info().device, "stp0");
  EXPECT_EQ(a.port->info().address, parse_ipv4("10.9.0.1"));
  expect_frames_arrive_in_order(a, b, 60, 3);
  std::string error;
  EXPECT_FALSE(open_link("iface:stp0", error)) << "two links own one interface";
  LinkEnd c;
  c.open("udp:" + name + ",port=0");
  EXPECT_EQ(c.port->info().address, parse_ipv4("10.9.0.1"));
  const auto scoped = parse_internet_address("fe80::1%" + name);
  ASSERT_TRUE(scoped);
  EXPECT_EQ(scoped->scope, ::if_nametoindex("stp0"));
}

// Each side probes according to RFC 5227 and names the other one.
TEST_F(Iface, AnAddressThatTwoHaveIsFound) {
  open(1500, ",address=10.9.0.1/24", ",address=10.9.0.1/24");
  EXPECT_TRUE(turn_until(a, b, [&] {
    return a.port->state() == LinkState::kDuplicate && b.port->state() == LinkState::kDuplicate;
  }));
  EXPECT_NE(a.port->trouble().find("10.9.0.1 is also that of " + to_string(b.mac())),
            std::string::npos)
      << a.port->trouble();
  EXPECT_TRUE(a.port->link_up());
  EXPECT_EQ(counter(*a.port, "arp_conflicts"), 1U);
}

// Both have the address, each in its own VLAN; and b is asked by a third station of another VLAN.
TEST_F(Iface, ArpOfOtherVlansChangesNothing) {
  open(1500, ",vlan=10,address=10.9.0.1/24", ",address=10.9.0.1/24");
  ASSERT_TRUE(turn_faster_until(a, b, [&] {
    return counter(*a.port, "arp_probes_sent") >= 5 && counter(*b.port, "arp_probes_sent") >= 5;
  }));
  a.port->resolve(*parse_ipv4("10.9.0.3"), now() + a.ahead);
  ASSERT_TRUE(turn_faster_until(a, b, [&] { return counter(*b.port, "rx_other_vlan") >= 6; }));
  EXPECT_EQ(a.port->state(), LinkState::kUp);
  EXPECT_EQ(b.port->state(), LinkState::kUp);
  EXPECT_EQ(counter(*a.port, "arp_conflicts") + counter(*b.port, "arp_conflicts"), 0U);
  EXPECT_EQ(counter(*b.port, "arp_ignored") + counter(*b.port, "arp_learned"), 0U);
}

TEST_F(Iface, AnAddressOfTheKernelsThatAnotherStationHasIsFound) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  a.open("iface:stp0");
  b.open("iface:stp1,address=10.9.0.1/24");
  EXPECT_TRUE(turn_faster_until(a, b, [&] { return a.port->state() == LinkState::kDuplicate; }));
  EXPECT_TRUE(turn_faster_until(a, b, [&] { return b.port->state() == LinkState::kDuplicate; }));
}

TEST_F(Iface, AStationWithTheSameMacAddressIsFound) {
  open(1500, ",mac=02:00:00:00:00:77,address=10.9.0.1/24",
       ",mac=02:00:00:00:00:77,address=10.9.0.2/24");
  EXPECT_TRUE(turn_faster_until(a, b, [&] {
    return a.port->state() == LinkState::kDuplicate && b.port->state() == LinkState::kDuplicate;
  }));
  EXPECT_NE(a.port->trouble().find("02:00:00:00:00:77 is also that of the station with 10.9.0.2"),
            std::string::npos)
      << a.port->trouble();
}

TEST_F(Iface, AnAddressOnAnInterfaceHasOneOwner) {
  open(1500);
  const std::string error = error_of("iface:stp0");
  EXPECT_NE(error.find("pid " + std::to_string(getpid())), std::string::npos) << error;
  EXPECT_NE(error.find("mac="), std::string::npos) << error;
  a.port.reset();
  a.open("iface:stp0");
  expect_frames_arrive_in_order(a, b, 60, 10);
}

// Who asks for the owner waits in a queue of two until the owner looks.
TEST_F(Iface, AnOwnerIsFoundHoweverOftenSomebodyAsks) {
  open(1500);
  const auto index = static_cast<int>(if_nametoindex("stp0"));
  const std::string me = "pid " + std::to_string(getpid());
  for (int i = 0; i < 5; ++i) EXPECT_NE(InterfaceOwner::find(index, a.mac()), "");
  for (int i = 0; i < 5; ++i)
    EXPECT_NE(error_of("iface:stp0").find("has an owner"), std::string::npos);
  EXPECT_TRUE(turn_until(
      a, b, [&] { return InterfaceOwner::find(index, a.mac()).find(me) != std::string::npos; }));
  const MacAddr mac = a.mac();
  a.port.reset();
  EXPECT_EQ(InterfaceOwner::find(index, mac), "");
}

// Any program may take the name; only one that may open packet sockets owns an interface.
TEST_F(Iface, ANameWithoutALinkBehindItKeepsNobodyOut) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 address 02:00:00:00:0a:01"));
  const std::string name =
      "stp-link:" + std::to_string(if_nametoindex("stp0")) + ":02:00:00:00:0a:01";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const int squatter = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(::bind(squatter, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(squatter, 1), 0);
  // Its queue is full, so that it does not show its user, and root has a packet socket there as
  // tcpdump has.
  std::vector<os::UniqueFd> askers;
  do askers.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  while (::connect(askers.back().get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  sockaddr_ll all{};
  all.sll_family = AF_PACKET;
  all.sll_protocol = htons(ETH_P_ALL);
  all.sll_ifindex = static_cast<int>(if_nametoindex("stp0"));
  const os::UniqueFd other(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all), 0);
  a.open("iface:stp0");
  // The second link is told of the first all the same, also when the name is free again.
  EXPECT_NE(error_of("iface:stp0").find("has an owner"), std::string::npos);
  askers.clear();
  ::close(squatter);
  EXPECT_NE(error_of("iface:stp0").find("has an owner"), std::string::npos);
}

TEST_F(Iface, ALinkWhoseInterfaceIsAbsentSaysWhatIsMissing) {
  LinkConfig config;
  std::string error;
  ASSERT_TRUE(parse_link("iface:stp0,address=10.9.0.1/24", config, error)) << error;
  auto ports = absent_link(config);
  ASSERT_EQ(ports.size(), 1U);
  a.port.reset(static_cast<LinkPort*>(ports.front().release()));
  const auto becomes = [&](LinkState state, const std::string& words) {
    return turn_until(a, a, [&] {
      return a.port->state() == state && a.port->trouble().find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(becomes(LinkState::kGone, "there is no interface stp0"));
  EXPECT_EQ(a.port->resolve(*parse_ipv4("10.9.0.2"), now()), std::nullopt);
  // What is sent goes nowhere, and keeps no memory.
  const Frame memory = make_bytes(1024, 1);
  for (RegionId i = 1; i <= 100; ++i)
    a.engine.send_attached(make_frame(MacAddr{{2, 0, 0, 0, 0, 9}}, a.mac(), 54), memory, i);
  EXPECT_TRUE(turn_until(a, a, [&] { return a.engine.returned.size() == 100; }));
  EXPECT_EQ(counter(*a.port, "tx_dropped"), 100U);
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  EXPECT_TRUE(becomes(LinkState::kDown, "ip link set stp0 up"));
  EXPECT_TRUE(absence_of("stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 up"));
  EXPECT_TRUE(becomes(LinkState::kUnknown, "about to be opened"));
  EXPECT_FALSE(absence_of("stp0"));
}

TEST_F(Iface, ALinkWaitsForItsAddressOrItsFolderAsWell) {
  const auto config_of = [](const std::string& link) {
    LinkConfig config;
    std::string error;
    EXPECT_TRUE(parse_link(link, config, error)) << error;
    return config;
  };
  const auto trouble = [&](const std::string& link) {
    const auto ports = absent_link(config_of(link));
    EXPECT_EQ(ports.front()->state(),
              absence_of(config_of(link)) ? LinkState::kGone : LinkState::kUnknown);
    return ports.front()->trouble();
  };
  for (const auto* const link : {"udp:10.9.0.7", "udp:[2001:db8::7]"})
    EXPECT_NE(trouble(link).find("no interface of this host has the address"), std::string::npos)
        << link;
  for (const auto* const link : {"udp:stp0", "udp:[fe80::1%stp0]"})
    EXPECT_NE(trouble(link).find("there is no interface stp0"), std::string::npos) << link;
  EXPECT_NE(trouble("memif:/nowhere/at/all/m.sock,role=server").find("/nowhere/at/all"),
            std::string::npos);
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.7/24 dev stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 2001:db8::7/64 dev stp0 nodad"));
  // What others make does not wait either.
  for (const auto* const link :
       {"udp:10.9.0.7", "udp:[2001:db8::7]", "udp:stp0", "udp:", "memif:/tmp/m.sock,role=server",
        "memif:/nowhere/m.sock", "iface:nowhere0,driver=af_xdp", "pci:0000:3b:00.0"})
    EXPECT_FALSE(absence_of(config_of(link))) << link;
}

TEST_F(Iface, FramesOfOtherProtocolsStayOutside) {
  open(1500);
  expect_frames_arrive_in_order(b, a, 60, 1);
  Frame other = make_frame(a.mac(), b.mac(), 60);
  other[12] = std::byte{0x08};
  other[13] = std::byte{0x00};
  Frame snap = make_frame(a.mac(), b.mac(), 60);
  const std::array<std::uint8_t, 10> head{0, 46, 0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0x81};
  std::transform(head.begin(), head.end(), snap.begin() + 12, [](auto v) { return std::byte{v}; });
  a.engine.received.clear();
  b.engine.send(other);
  b.engine.send(snap);
  EXPECT_TRUE(turn_until(a, b, [&] { return !a.engine.received.empty(); }));
  EXPECT_EQ(a.engine.received, std::vector<Frame>{snap});
}

TEST_F(Iface, ErrorsNameTheCauseAndTheRemedy) {
  EXPECT_NE(error_of("iface:nowhere0").find("no such interface"), std::string::npos);
  EXPECT_NE(error_of("iface:lo").find("'loop'"), std::string::npos);
  ASSERT_TRUE(NetworkNamespace::make_veth(9000));
  EXPECT_NE(error_of("iface:stp0,mtu=9001").find("ip link set stp0 mtu 9001"), std::string::npos);
  EXPECT_NE(error_of("iface:stp0,driver=af_xdp").find("3506"), std::string::npos);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  EXPECT_NE(error_of("iface:stp0").find("ip link set stp0 up"), std::string::npos);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 mtu 300"));
  EXPECT_NE(error_of("iface:stp1").find("too small"), std::string::npos);
}

}  // namespace
}  // namespace stp::port
