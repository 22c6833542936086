// SPDX-License-Identifier: BSD-3-Clause
// What the kernel refuses on some machines, at some times: no segmentation, no room, no page, a
// datagram that is too long. The kernel does it where a test can make it; where not, sendmsg() and
// sendmmsg() below fail in its place. And which calls a lone datagram costs: those below count.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>

#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/udp/socket_of.h"

namespace {

// Of the calls that send from `fd`: the error of each, or 0 for one that the kernel gets.
struct Injected {
  int fd = -1;
  std::deque<int> errors;

  // Whether the call fails instead of being made.
  bool takes(int called) {
    if (called != fd || errors.empty()) return false;
    errno = errors.front();
    errors.pop_front();
    return errno != 0;
  }
} injected;

// Calls of this program, on any socket.
struct Calls {
  unsigned sent = 0, sent_several = 0, asked = 0, asked_several = 0;
  std::size_t control = 0;  // bytes of it in the last call that sent one message
} calls;

}  // namespace

// In the place of libc's, for this program.
extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  ++calls.sent;
  calls.control = message->msg_controllen;
  return injected.takes(fd) ? -1 : ::syscall(SYS_sendmsg, fd, message, flags);
}
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  ++calls.asked;
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
extern "C" int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  ++calls.asked_several;
  return static_cast<int>(::syscall(SYS_recvmmsg, fd, messages, count, flags, timeout));
}
extern "C" int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  ++calls.sent_several;
  return injected.takes(fd) ? -1
                            : static_cast<int>(::syscall(SYS_sendmmsg, fd, messages, count, flags));
}

namespace stp::port::injected_test {
namespace {

constexpr std::size_t kHead = 14 + 40;
constexpr std::byte kData{0x1b << 3};

class UdpFaults : public ::testing::Test {
 protected:
  UdpFaults() {
    a.open("udp:127.0.0.1,port=0,mtu=9000");
    b.open("udp:127.0.0.1,port=0,mtu=9000");
    auto address = *parse_internet_address("127.0.0.1");
    address.port = b.port->info().udp_port;
    there = a.port->find_station(address, now()).value();
  }
  ~UdpFaults() override { injected = {}; }

  void fail_with(std::deque<int> errors) { injected = {socket_of(*a.port), std::move(errors)}; }
  void send(unsigned count, std::size_t length = 1'000) {
    for (unsigned i = 0; i < count; ++i) a.engine.send(frame(length));
  }
  Frame frame(std::size_t length) {
    Frame out = make_frame(there, a.mac(), length, sent++);
    out[14] = kData;
    return out;
  }
  // Each frame arrives once, in order.
  void expect_all() {
    ASSERT_TRUE(turn_until(a, b, [&] { return b.engine.received.size() >= sent; }));
    ASSERT_EQ(b.engine.received.size(), sent);
    for (unsigned i = 0; i < sent; ++i) {
      const Frame& got = b.engine.received[i];
      const Frame whole = make_frame(b.mac(), there, got.size(), i);
      ASSERT_TRUE(std::equal(got.begin() + 15, got.end(), whole.begin() + 15)) << i;
    }
  }
  std::uint64_t count(const std::string& name) { return counter(*a.port, name); }
  bool segments() { return a.port->info().driver.find("segment") != std::string::npos; }

  LinkEnd a, b;
  MacAddr there;
  unsigned sent = 0;
};

// The kernel refuses to cut apart what it shall not sum, as it does for devices without sums.
TEST_F(UdpFaults, WithoutSegmentationItGoesOnWithOneDatagramEach) {
  if (!segments()) GTEST_SKIP() << "no UDP_SEGMENT here";
  const int on = 1;
  ASSERT_EQ(::setsockopt(socket_of(*a.port), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  send(200);
  ASSERT_NO_FATAL_FAILURE(expect_all());
  EXPECT_FALSE(segments()) << "the link says so";
  EXPECT_NE(a.port->info().driver.find(", one by one ("), std::string::npos)
      << a.port->info().driver;
  EXPECT_NE(a.port->trouble().find("does not cut several apart (UDP_SEGMENT): "), std::string::npos)
      << a.port->trouble();
  EXPECT_EQ(count("udp_tx_refused"), 0U);
}

TEST_F(UdpFaults, WithoutJoiningEachDatagramArrivesByItself) {
  const int off = 0;
  if (::setsockopt(socket_of(*b.port), IPPROTO_UDP, UDP_GRO, &off, sizeof off) != 0)
    GTEST_SKIP() << "no UDP_GRO here";
  send(200);
  ASSERT_NO_FATAL_FAILURE(expect_all());
  EXPECT_EQ(counter(*b.port, "udp_rx_joined"), 0U);
}

TEST_F(UdpFaults, ReportsInThePlaceOfACallDoNotEndSegmentation) {
  if (!segments()) GTEST_SKIP() << "no UDP_SEGMENT here";
  // The errors that hosts can report and that devices without segmentation have, too.
  for (const int error : {ENOPROTOOPT, EOPNOTSUPP}) {
    fail_with({error});
    send(50);
    ASSERT_NO_FATAL_FAILURE(expect_all());
  }
  EXPECT_TRUE(segments());
  EXPECT_EQ(count("udp_tx_refused"), 0U);
}

TEST_F(UdpFaults, WithoutRoomDatagramsWaitAndKeepTheirOrder) {
  fail_with({EAGAIN, 0, EAGAIN});
  send(100, 900);
  send(1, 300);
  ASSERT_NO_FATAL_FAILURE(expect_all());
  EXPECT_GT(count("tx_kept"), 0U);
  EXPECT_EQ(count("tx_dropped"), 0U);
}

// The kernel has no place for the neighbor: that is no reason for others to wait.
TEST_F(UdpFaults, WhatTheKernelLosesIsCountedAndKeepsNobodyWaiting) {
  for (const int error : {ENOBUFS, ENOMEM}) {
    const auto before = count("tx_dropped");
    fail_with({error});
    send(3, 900);
    a.turn();
    EXPECT_EQ(count("tx_dropped"), before + 3);
    EXPECT_TRUE(a.port->prepare_to_sleep()) << "nothing waits";
    EXPECT_NE(a.port->trouble().find(std::strerror(error)), std::string::npos) << a.port->trouble();
    EXPECT_FALSE(a.port->is_reported_gone(there));
    sent = 0;
  }
  send(3);
  ASSERT_NO_FATAL_FAILURE(expect_all());
  EXPECT_EQ(count("tx_kept"), 0U);
}

// The kernel keeps what is for an address that nobody has, and counts it in the buffer of a socket.
TEST_F(UdpFaults, WhereTheBufferForSilentStationsIsFullOthersGoOn) {
  const int deaf = socket_of(*a.port, Connected::kToNobody);
  ASSERT_GE(deaf, 0);
  const MacAddr absent =
      a.port->find_station(InternetAddress::of(Ipv4{INADDR_LOOPBACK + 7}, 9'001), now()).value();
  injected = {deaf, std::deque<int>(20, EAGAIN)};
  for (unsigned i = 0; i < 5; ++i)
    a.engine.send_to_silent(make_frame(absent, a.mac(), 1'000 + i % 2, i));
  send(5);
  a.turn();
  const auto tried = injected.errors.size();
  EXPECT_LT(tried, 20U);
  const auto asker = InternetAddress::of(Ipv4{INADDR_LOOPBACK + 8}, 9'001);
  a.engine.send_to_stranger(
      make_frame(a.port->find_station(asker, now()).value(), a.mac(), 1'000, 0));
  a.turn();
  EXPECT_EQ(injected.errors.size(), tried) << "a stranger's goes by another socket";
  EXPECT_EQ(count("udp_tx_silent"), 5U);
  EXPECT_TRUE(a.port->prepare_to_sleep()) << "nothing waits";
  ASSERT_NO_FATAL_FAILURE(expect_all());
  EXPECT_EQ(count("tx_kept") + count("tx_dropped"), 0U);
  injected.errors.clear();
  a.engine.send_to_silent(frame(1'000));
  ASSERT_NO_FATAL_FAILURE(expect_all());
  EXPECT_EQ(count("udp_tx_silent"), 5U);
}

TEST_F(UdpFaults, TheSocketForSilentStationsHearsNothing) {
  for (const char* const text : {"udp:127.0.0.1,port=0", "udp:0.0.0.0,port=0", "udp:,port=0"}) {
    LinkEnd end;
    end.open(text);
    const int deaf = socket_of(*end.port, Connected::kToNobody);
    ASSERT_GE(deaf, 0) << text;
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(end.port->info().udp_port);
    // Whatever the port that it comes from, by which the kernel might choose.
    for (std::size_t i = 1; i <= 16; ++i) {
      const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      ::sendto(fd, "0123456789", 10, 0, reinterpret_cast<const sockaddr*>(&name), sizeof name);
      ::close(fd);
      end.turn();
      EXPECT_EQ(end.engine.received.size(), i) << text;
    }
    std::byte heard{};
    EXPECT_EQ(::recv(deaf, &heard, 1, MSG_DONTWAIT), -1);
  }
}

TEST_F(UdpFaults, WithoutRoomForLongDatagramsAreDroppedAndCounted) {
  fail_with(std::deque<int>(20, EAGAIN));
  send(10);
  const Time begin = now();
  a.port->turn(a.engine, begin);
  EXPECT_FALSE(a.port->prepare_to_sleep()) << "they wait";
  a.port->turn(a.engine, begin + 99 * kMillisecond);
  EXPECT_EQ(count("tx_dropped"), 0U);
  a.port->turn(a.engine, begin + 100 * kMillisecond);
  EXPECT_EQ(count("tx_dropped"), 10U);
  EXPECT_TRUE(a.port->prepare_to_sleep());
}

// Only the one that is too long is lost.
TEST_F(UdpFaults, OfSeveralInACallOnlyTheLongOneIsGivenUp) {
  if (!segments()) GTEST_SKIP() << "no UDP_SEGMENT here";
  fail_with(std::deque<int>(12, EMSGSIZE));
  a.engine.send(frame(9'000));
  sent = 0;
  a.turn();
  EXPECT_EQ(count("udp_tx_too_long"), 1U);
  EXPECT_EQ(a.port->state(), LinkState::kMtu);
  injected = {};
  send(20);
  ASSERT_NO_FATAL_FAILURE(expect_all());
}

// The calls for one message take less time than those for several. A link at all addresses tells
// the kernel which one it sends from, in no more bytes than the kernel takes without memory of its
// own for them.
TEST_F(UdpFaults, ALoneDatagramIsSentAndAwaitedByTheCallsForOne) {
  constexpr std::size_t kTakenInPlace = sizeof(cmsghdr) + 20;
  LinkEnd any;
  any.open("udp:,port=0,mtu=9000");
  auto address = *parse_internet_address("127.0.0.1");
  address.port = b.port->info().udp_port;
  const MacAddr to = any.port->find_station(address, now()).value();
  any.turn();
  b.turn();
  for (unsigned i = 1; i <= 3; ++i) {
    calls = {};
    any.engine.send(make_frame(to, any.mac(), 100, i));
    any.turn();
    EXPECT_EQ(calls.sent, 1U);
    EXPECT_EQ(calls.sent_several, 0U);
    EXPECT_LE(calls.control, kTakenInPlace);
    EXPECT_EQ(calls.asked, 1U) << "an idle turn asks once";
    EXPECT_EQ(calls.asked_several, 0U);
    calls = {};
    b.turn();
    ASSERT_EQ(b.engine.received.size(), i);
    EXPECT_EQ(calls.asked, 1U);
    EXPECT_EQ(calls.asked_several, 0U);
    b.turn();
    EXPECT_EQ(calls.asked_several, 1U) << "more may have come behind it";
  }
}

// A page of a user's memory that is not there: this thread's own access brings one.
std::byte* hole = nullptr;
std::size_t page_size = 0;
void fill_hole(int, siginfo_t* fault, void*) {
  if (fault->si_addr < hole || fault->si_addr >= hole + page_size) ::_exit(3);
  ::mprotect(hole, page_size, PROT_READ | PROT_WRITE);
}

TEST_F(UdpFaults, APageThatIsMissingIsBroughtByThisThread) {
  page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const page =
      ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  hole = static_cast<std::byte*>(page);
  std::fill_n(hole, page_size, std::byte{7});
  ASSERT_EQ(::mprotect(hole, page_size, PROT_NONE), 0);
  struct sigaction handler = {};
  struct sigaction before = {};
  handler.sa_sigaction = fill_hole;
  handler.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGSEGV, &handler, &before), 0);
  const Frame memory = make_bytes(2'000, 5);
  const Bytes missing(hole, 2'000);
  for (const Bytes each : {Bytes(memory), missing, Bytes(memory)})
    a.engine.send_attached(frame(kHead), each, 3);
  ASSERT_TRUE(turn_until(a, b, [&] { return b.engine.received.size() == 3; }));
  ::sigaction(SIGSEGV, &before, nullptr);
  EXPECT_TRUE(std::equal(missing.begin(), missing.end(), b.engine.received[1].begin() + kHead));
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), b.engine.received[2].begin() + kHead));
  EXPECT_EQ(a.engine.returned[3], 3U);
  EXPECT_EQ(count("udp_tx_refused"), 0U);
  ::munmap(page, page_size);
}

}  // namespace
}  // namespace stp::port::injected_test
