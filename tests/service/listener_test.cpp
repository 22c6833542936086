// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/listener.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "tests/service/eventually.h"
#include "tests/temporary_directory.h"

namespace stp::service {
namespace {

class ListenerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kKey = 5;

  void SetUp() override {
    ASSERT_TRUE(epoll);
    ASSERT_EQ(listener.open(path, {}), 0);
    listener.watch(epoll.get(), kKey);
  }
  // Whether epoll reports that a client waits.
  bool is_reported() const {
    epoll_event event{};
    return ::epoll_wait(epoll.get(), &event, 1, 0) == 1 && event.data.u64 == kKey;
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  const UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  Listener listener;
  UniqueFd client;
  int error = 0;
};

TEST_F(ListenerTest, AcceptsAClientThatEpollReports) {
  EXPECT_FALSE(is_reported());
  EXPECT_FALSE(listener.accept(error));
  EXPECT_EQ(error, EAGAIN);
  ASSERT_EQ(connect_to(path, client), 0);
  EXPECT_TRUE(is_reported());
  EXPECT_TRUE(listener.accept(error));
  EXPECT_EQ(error, 0);
}

TEST_F(ListenerTest, WhilePausedAClientWaitsAndIsNotReported) {
  listener.pause();
  EXPECT_TRUE(listener.is_paused());
  ASSERT_EQ(connect_to(path, client), 0);
  EXPECT_FALSE(is_reported());
  EXPECT_TRUE(eventually([&] {
    listener.resume_if_due();
    return !listener.is_paused();
  }));
  EXPECT_TRUE(is_reported());
}

TEST_F(ListenerTest, APauseEndsWhenAPlaceIsFree) {
  listener.pause();
  ASSERT_EQ(connect_to(path, client), 0);
  listener.resume();
  EXPECT_TRUE(is_reported());
}

TEST_F(ListenerTest, ItsFileGoesWithIt) {
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  EXPECT_TRUE(listener.end());
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  EXPECT_FALSE(listener.is_open());
  EXPECT_FALSE(listener.end());
  listener.resume();  // no harm
}

TEST(Listener, OnlyAShortageMakesClientsWait) {
  for (const auto error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) EXPECT_TRUE(Listener::starved(error));
  for (const auto error : {EAGAIN, EINTR, ECONNABORTED}) EXPECT_FALSE(Listener::starved(error));
}

}  // namespace
}  // namespace stp::service
