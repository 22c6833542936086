// SPDX-License-Identifier: BSD-3-Clause
// Long messages stay in the socket of a link for a while after they have been read.
#include "dpdk_port/udp/kept_messages.h"

#include <gtest/gtest.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "tests/dpdk_port/udp/udp_pair.h"

namespace stp::port::kept_messages_test {
namespace {

constexpr unsigned kFrames = 7;  // of a burst
constexpr std::size_t kLength = 8'192;

class KeptMessagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (receive_buffer() < 4 * UdpSocket::kKept)
      GTEST_SKIP() << "this user's sockets have small buffers";
    if (pair_.b.port->info().driver.find("gro") == std::string::npos)
      GTEST_SKIP() << "the kernel joins nothing";
  }
  // The time of the links stands still, so that nothing depends on how busy this machine is.
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
  EXPECT_GT(in_socket(), UdpSocket::kKept / 2);
  EXPECT_LT(in_socket(), 2 * UdpSocket::kKept);
  ASSERT_NO_FATAL_FAILURE(expect_all_once());
}

TEST_F(KeptMessagesTest, LeaveItWhenNothingLongComes) {
  stream(50);
  ASSERT_TRUE(is_readable());
  const Bytes lone = make_bytes(100, 7);
  ASSERT_TRUE(Stranger(pair_.b).send(lone));
  turn_b();
  ASSERT_EQ(pair_.b.engine.received.size(), sent_ + 1);
  time_ += KeptMessages::kWhile + 1;
  for (unsigned i = 0; i <= KeptMessages::kMost / KeptMessages::kAtOnce; ++i) turn_b();
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

}  // namespace
}  // namespace stp::port::kept_messages_test
