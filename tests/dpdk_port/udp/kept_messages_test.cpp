// SPDX-License-Identifier: BSD-3-Clause
// Long messages stay in the socket of a link for a while after they have been
// read.
#include "dpdk_port/udp/kept_messages.h"

#include <gtest/gtest.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/dpdk_port/udp/udp_pair.h"

// What the kernel says of the NIC that has received something; 0: what it says
// itself.
static std::atomic<unsigned> nic{0};

// In the place of libc's, for this program.
extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_getsockopt, fd, level, name, value, length));
  if (level == SOL_SOCKET && name == SO_INCOMING_NAPI_ID && result == 0 && nic != 0)
    *static_cast<unsigned*>(value) = nic;
  return result;
}

namespace stp::port::kept_messages_test {
namespace {

constexpr unsigned kFrames = 7;  // of a burst
constexpr std::size_t kLength = 8'192;

class KeptMessagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (receive_buffer() < 2 * KeptLength::kLong)
      GTEST_SKIP() << "this user's sockets have small buffers";
    if (pair_.b.port->info().driver.find("gro") == std::string::npos)
      GTEST_SKIP() << "the kernel joins nothing";
  }
  // The time of the links stands still, so that nothing depends on how busy
  // this machine is.
  void turn_b() { pair_.b.port->turn(pair_.b.engine, time_); }
  void turn_a() { pair_.a.port->turn(pair_.a.engine, time_); }
  [[nodiscard]] int socket() const { return socket_of(*pair_.b.port); }
  [[nodiscard]] std::size_t receive_buffer() const {
    int size = 0;
    socklen_t length = sizeof size;
    ::getsockopt(socket(), SOL_SOCKET, SO_RCVBUF, &size, &length);
    return static_cast<std::size_t>(size);
  }
  // Bytes of memory that wait in the socket, for the kernel.
  [[nodiscard]] std::size_t in_socket() const {
    std::array<std::uint32_t, SK_MEMINFO_VARS> all{};
    socklen_t length = sizeof all;
    ::getsockopt(socket(), SOL_SOCKET, SO_MEMINFO, all.data(), &length);
    return all[SK_MEMINFO_RMEM_ALLOC];
  }
  [[nodiscard]] bool is_readable() const {
    pollfd waker{.fd = socket(), .events = POLLIN, .revents = 0};
    return ::poll(&waker, 1, 0) == 1;
  }
  void send_burst() {
    for (unsigned i = 0; i < kFrames; ++i)
      pair_.a.engine.send(frame_of(kData, pair_.b_at_a, pair_.a.mac(), kLength, sent_++));
    while (pair_.a.engine.waiting() > 0) turn_a();
  }
  void stream(unsigned bursts) {
    for (unsigned i = 0; i < bursts; ++i) {
      send_burst();
      for (unsigned turn = 0; pair_.b.engine.received.size() < sent_ && turn < 100'000; ++turn)
        turn_b();
    }
  }
  void expect_all_once() const {
    ASSERT_EQ(pair_.b.engine.received.size(), sent_);
    for (unsigned i = 0; i < sent_; ++i)
      ASSERT_EQ(pair_.b.engine.received[i],
                frame_of(kData, pair_.b.mac(), pair_.a_at_b, kLength, i))
          << i;
  }

  UdpPair pair_{"127.0.0.1", ",mtu=9000"};
  Time time_ = now();
  unsigned sent_ = 0;
};

TEST_F(KeptMessagesTest, StayInTheSocketUntilMuchMoreHasComeAndPassOnce) {
  stream(100);
  EXPECT_GT(counter(*pair_.b.port, "udp_rx_kept"), 80U) << "all but the first half MiB";
  EXPECT_GT(in_socket(), KeptLength::kShort / 2);
  EXPECT_LT(in_socket(), 2 * KeptLength::kShort);
  ASSERT_NO_FATAL_FAILURE(expect_all_once());
}

// The sender is faster where more stays.
TEST_F(KeptMessagesTest, AreMoreWhereMoreComesSo) {
  constexpr std::size_t kTrial = 2 * (KeptLength::kMeasured + KeptLength::kLong);
  for (unsigned i = 0; i < kTrial / (kFrames * kLength) + 100; ++i) {
    time_ += (in_socket() > 2 * KeptLength::kShort ? 10 : 20) * kMicrosecond;
    stream(1);
    pair_.b.engine.received.clear();
    sent_ = 0;
  }
  unsigned messages = 0;
  while (::recv(socket(), nullptr, 0, MSG_DONTWAIT | MSG_TRUNC) > 0) ++messages;
  EXPECT_GT(messages, KeptLength::kFewMessages);
  EXPECT_LE(messages, KeptLength::kManyMessages);
}

TEST_F(KeptMessagesTest, LeaveItWhenNothingLongComes) {
  stream(50);
  ASSERT_TRUE(is_readable());
  const auto lone = make_bytes(100, 7);
  ASSERT_TRUE(Stranger(pair_.b).send(lone));
  turn_b();
  ASSERT_EQ(pair_.b.engine.received.size(), sent_ + 1);
  time_ += KeptMessages::kWhile + 1;
  for (unsigned i = 0; i <= KeptLength::kFewMessages / KeptMessages::kAtOnce; ++i) turn_b();
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(in_socket(), 0U);
  EXPECT_EQ(pair_.b.engine.received.size(), sent_ + 1) << "that once, too";
  pair_.b.engine.received.pop_back();
  stream(1);
  ASSERT_NO_FATAL_FAILURE(expect_all_once());
}

TEST_F(KeptMessagesTest, DoNotWakeWhoSleeps) {
  stream(50);
  send_burst();
  ASSERT_TRUE(pair_.b.port->prepare_to_sleep());
  EXPECT_TRUE(is_readable()) << "that one has not been read";
  stream(1);
  ASSERT_TRUE(pair_.b.port->prepare_to_sleep());
  EXPECT_FALSE(is_readable());
  stream(50);
  ASSERT_NO_FATAL_FAILURE(expect_all_once());
}

// A little at a time costs nobody a call more.
TEST_F(KeptMessagesTest, AreNoneWhileLittleComes) {
  for (unsigned i = 0; i < 30; ++i) {
    time_ += KeptMessages::kSoon / 4;
    stream(1);
  }
  EXPECT_EQ(counter(*pair_.b.port, "udp_rx_kept"), 0U);
  EXPECT_FALSE(is_readable());
}

TEST_F(KeptMessagesTest, AreNoneWhereTheKernelWouldReadTheFirstAgainAndAgain) {
  const int none = -1;
  ASSERT_EQ(::setsockopt(socket(), SOL_SOCKET, SO_PEEK_OFF, &none, sizeof none), 0);
  stream(50);
  EXPECT_EQ(counter(*pair_.b.port, "udp_rx_kept"), 0U);
  ASSERT_NO_FATAL_FAILURE(expect_all_once());
}

// The kernel tells that of a socket's first message alone.
TEST_F(KeptMessagesTest, StayIfTheyAreOfThisHostWhateverANicHasBroughtFirst) {
  nic = 9'999;
  stream(100);
  nic = 0;
  EXPECT_GT(counter(*pair_.b.port, "udp_rx_kept"), 80U);
  ASSERT_NO_FATAL_FAILURE(expect_all_once());
}

// Alone, with a socket of its own.
class KeptInASocket : public ::testing::Test {
 protected:
  void SetUp() override {
    socket_ = open();
    ASSERT_TRUE(socket_);
    if (socket_->kept_bytes() == 0) GTEST_SKIP() << "this user's sockets have small buffers";
    kept_ = std::make_unique<KeptMessages>(*socket_);
    begin();
    ASSERT_TRUE(kept_->are_kept());
  }
  void TearDown() override { ::close(sender_); }
  std::unique_ptr<UdpSocket> open() {
    LinkConfig config;
    std::string text;
    OpenError error;
    EXPECT_TRUE(parse_link("udp:127.0.0.1,port=0", config, text)) << text;
    auto all = UdpSocket::open(config, 1, false, troubles_, error);
    return all.empty() ? nullptr : std::move(all.front());
  }
  void begin() {
    kept_->have_read(KeptMessages::kMuch, true, KeptMessages::From::kThisHost, 1);
    kept_->settle(1);
  }
  void send(const UdpSocket& to, std::size_t length) const {
    const std::vector<char> bytes(length);
    sockaddr_storage name{};
    const auto size = to_socket_address(to.address(), AF_INET, name);
    ASSERT_EQ(
        ::sendto(sender_, bytes.data(), length, 0, reinterpret_cast<const sockaddr*>(&name), size),
        static_cast<ssize_t>(length));
  }
  // The length of the next one; -1: there is none.
  [[nodiscard]] ssize_t receive(int flags) const {
    std::array<char, 2'048> bytes;
    return ::recv(socket_->fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | flags);
  }
  void keep(std::size_t length) {
    send(*socket_, length);
    ASSERT_EQ(receive(MSG_PEEK), static_cast<ssize_t>(length));
    kept_->have_read(length, false, KeptMessages::From::kThisHost, 1);
  }

  UdpTroubles troubles_;
  std::unique_ptr<UdpSocket> socket_;
  std::unique_ptr<KeptMessages> kept_;
  const int sender_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

TEST_F(KeptInASocket, OneWithoutBytesIsTakenOutAsAnyOther) {
  for (const std::size_t length : {10, 0, 20}) keep(length);
  kept_->let_go(1);
  EXPECT_EQ(receive(0), -1);
  begin();
  EXPECT_TRUE(kept_->are_kept()) << "all was as it must be";
}

TEST_F(KeptInASocket, WhatASocketHasThatReplacesItIsNotTakenOut) {
  keep(100);
  const auto next = open();
  ASSERT_TRUE(next);
  ASSERT_EQ(next->take_place_of(*socket_), "");
  send(*next, 100);
  kept_->let_go(1);
  EXPECT_EQ(receive(0), 100);
  EXPECT_FALSE(kept_->are_kept());
}

TEST_F(KeptInASocket, WhereTheOldestIsAnotherOneNothingIsKeptAnyMore) {
  for (const std::size_t length : {100, 200, 300}) keep(length);
  ASSERT_EQ(receive(0), 100) << "not by us";
  kept_->let_go(1);
  EXPECT_EQ(receive(MSG_PEEK), 300) << "what is left is read again";
  begin();
  EXPECT_FALSE(kept_->are_kept());
}

}  // namespace
}  // namespace stp::port::kept_messages_test
