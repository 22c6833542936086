// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/slow_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "tests/service/raw_client.h"
#include "tests/service/served_socket.h"

namespace stp::service {
namespace {

using std::chrono::milliseconds;

constexpr uid_t kSlowUser = 47'111, kAnother = 47'112;

class SlowSocketsTest : public testing::Test {
 protected:
  const SlowSockets::Clock::time_point begin = SlowSockets::Clock::now();
  SlowSockets slow;
};

TEST_F(SlowSocketsTest, WhoCostsTooMuchIsForgivenAHundredTimesLater) {
  slow.took(kSlowUser, milliseconds(4), begin);
  EXPECT_FALSE(slow.costs_too_much(kSlowUser, begin));
  slow.took(kSlowUser, milliseconds(4), begin);
  EXPECT_TRUE(slow.costs_too_much(kSlowUser, begin));
  EXPECT_FALSE(slow.costs_too_much(kAnother, begin));
  EXPECT_TRUE(slow.costs_too_much(kSlowUser, begin + milliseconds(290)));
  EXPECT_FALSE(slow.costs_too_much(kSlowUser, begin + milliseconds(310)));
}

TEST_F(SlowSocketsTest, OneSlowReplyIsNotTheFaultOfItsUser) {
  SlowSockets::Time socket{0};
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(slow.replied(kSlowUser, milliseconds(50), socket, begin));
    EXPECT_FALSE(slow.replied(kSlowUser, std::chrono::microseconds(10), socket, begin));
  }
}

TEST_F(SlowSocketsTest, TwoSlowRepliesInARowAre) {
  SlowSockets::Time one{0}, another{0};
  EXPECT_FALSE(slow.replied(kSlowUser, milliseconds(50), one, begin));
  EXPECT_TRUE(slow.replied(kSlowUser, milliseconds(50), another, begin)) << "of one user";
  EXPECT_FALSE(slow.replied(kAnother, milliseconds(50), one = {}, begin));
  another = {};
  EXPECT_FALSE(slow.replied(kAnother, std::chrono::microseconds(10), another, begin));
  EXPECT_TRUE(slow.replied(kAnother, milliseconds(50), one, begin)) << "of one socket";
}

TEST_F(SlowSocketsTest, UsualCallsDoNotCount) {
  for (int i = 0; i < 1'000; ++i)
    slow.took(kSlowUser, SlowSockets::kSlow - SlowSockets::Time(1), begin);
  EXPECT_FALSE(slow.costs_too_much(kSlowUser, begin));
}

TEST_F(SlowSocketsTest, OperatorsCostNothing) {
  for (const auto user : {uid_t{0}, ::geteuid()}) {
    slow.took(user, milliseconds(1'000), begin);
    EXPECT_FALSE(slow.costs_too_much(user, begin));
  }
}

// Waits for a socket 80,000 times with few descriptors.
class Watchers {
 public:
  explicit Watchers(int socket) {
    for (int i = 0; i < kCopies; ++i) copies_.emplace_back(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    for (int i = 0; i < kSets; ++i) {
      sets_.emplace_back(::epoll_create1(EPOLL_CLOEXEC));
      for (const auto& copy : copies_) {
        epoll_event event{};
        event.events = EPOLLIN;
        count_ += ::epoll_ctl(sets_.back().get(), EPOLL_CTL_ADD, copy.get(), &event) == 0 ? 1 : 0;
      }
    }
  }
  [[nodiscard]] bool all() const { return count_ == kCopies * kSets; }

 private:
  static constexpr int kCopies = 200, kSets = 400;
  std::vector<UniqueFd> copies_, sets_;
  int count_ = 0;
};

class SlowSocketsOfAServer : public testing::Test, protected ServedSocket {};

TEST_F(SlowSocketsOfAServer, ItsUserIsServedNoMoreAndOthersAre) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  open_directory();
  start();
  const auto client = client_of(kSlowUser);
  ASSERT_EQ(client->ask(RequestKind::kHello), 0);
  const Watchers watchers(client->socket.get());
  ASSERT_TRUE(watchers.all());
  int result = 0, asked = 0;
  for (; result == 0 && asked < 1'000; ++asked) result = client->ask(RequestKind::kLinkState);
  EXPECT_EQ(result, -ECONNRESET);
  EXPECT_EQ(server.counts().slow_sockets, 1U);
  EXPECT_NE(client_of(kSlowUser)->ask(RequestKind::kHello), 0);
  EXPECT_EQ(client_of(kAnother)->ask(RequestKind::kHello), 0);
  EXPECT_EQ(RawClient(path).ask(RequestKind::kHello), 0);
}

// They are closed at once, without a turn, and all who wait for them are woken then.
TEST_F(SlowSocketsOfAServer, OnesThatHaveGoneAgainCostTheirUserAsMuch) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  open_directory();
  ASSERT_EQ(server.listen(), 0);
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<Watchers> watchers;
  for (int i = 0; i < 2; ++i) {
    const auto socket = clients.emplace_back(client_of(kSlowUser))->socket.get();
    EXPECT_TRUE(watchers.emplace_back(socket).all());
    EXPECT_EQ(::shutdown(socket, SHUT_RDWR), 0);
  }
  start();
  EXPECT_NE(client_of(kSlowUser)->ask(RequestKind::kHello), 0);
  EXPECT_EQ(client_of(kAnother)->ask(RequestKind::kHello), 0);
}

}  // namespace
}  // namespace stp::service
