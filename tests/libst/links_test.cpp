// SPDX-License-Identifier: BSD-3-Clause
// Which link a program uses, what happens when it cannot, and when its daemon dies.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

TEST(Links, ALinkThatMakesNoSenseIsInvalidAndTheTextSaysWhy) {
  const UseLink link("nonsense:x");
  const Endpoint endpoint;
  EXPECT_EQ(endpoint.error(), -EINVAL);
  EXPECT_NE(std::string(st_strerror(endpoint.error())).find("nonsense"), std::string::npos);
}

TEST(Links, ALinkThatIsNotThereIsNoDeviceAndTheTextNamesIt) {
  const UseLink link("stpd:/nowhere/stpd.sock");
  const Endpoint endpoint;
  EXPECT_EQ(endpoint.error(), -ENODEV);
  EXPECT_NE(std::string(st_strerror(endpoint.error())).find("/nowhere/stpd.sock"),
            std::string::npos);
}

TEST(Links, AnErrorHasTheTextOfTheCallThatFailedWithIt) {
  EXPECT_EQ(st_create("malformed", nullptr), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("ehandle"), std::string::npos);
  EXPECT_STREQ(st_strerror(EINVAL), st_strerror(-EINVAL));
  EXPECT_EQ(std::string(st_strerror(-ENOENT)).find("ehandle"), std::string::npos);
  EXPECT_EQ(st_delete(nullptr), -EBADF);
  EXPECT_EQ(std::string(st_strerror(-EINVAL)).find("ehandle"), std::string::npos)
      << "that was another call";
}

TEST(Links, AnErrorWithoutAReasonSaysWhatItMeansHere) {
  const std::string text = st_strerror(-EMSGSIZE);
  EXPECT_TRUE(text.starts_with(std::string(std::strerror(EMSGSIZE)) + ": ")) << text;
  EXPECT_NE(text.find("longer than the receive"), std::string::npos) << text;
  EXPECT_EQ(st_delete(nullptr), -EBADF);
  EXPECT_NE(std::string(st_strerror(-EBADF)).find("the handle is closed"), std::string::npos);
  EXPECT_NE(std::string(st_strerror(-EMFILE)).find("raise its limit (ulimit -n)"),
            std::string::npos);
  EXPECT_STREQ(st_strerror(-ENOENT), std::strerror(ENOENT));
}

TEST(Links, EndpointsOfAProcessShareALinkAndTheLastOneClosesIt) {
  Daemon daemon;
  const UseLink link(daemon.link());
  for (int i = 0; i < 3; ++i) {
    Endpoint server(":3000"), client;
    ASSERT_EQ(st_listen(server), 0);
    st_chandle_t connected = nullptr;
    EXPECT_EQ(st_connect(client, ":3000", &connected), 0);
  }
}

TEST(Links, TheLoopLinkCanBeOpenedAgainAndAgain) {
  const UseLink link("loop");
  for (int i = 0; i < 5; ++i) {
    Endpoint server(":3000"), client;
    ASSERT_EQ(server.error(), 0) << st_strerror(server.error());
    ASSERT_EQ(st_listen(server), 0);
    st_chandle_t connected = nullptr;
    EXPECT_EQ(st_connect(client, ":3000", &connected), 0);
  }
}

bool means_gone(int error) {
  return error == -ENOTCONN || error == -ECONNRESET;
}

TEST(DaemonDeath, WakesEveryWaiterAndFailsEveryCall) {
  Daemon daemon;
  const UseLink link(daemon.link());
  Endpoint server(":3000"), client;
  ASSERT_EQ(st_listen(server), 0);
  st_chandle_t connected = nullptr, accepted = nullptr;
  ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
  ASSERT_EQ(st_accept(server, &accepted), 0);
  Buffer memory(1 << 16);
  st_mhandle_t region = nullptr;
  ASSERT_EQ(st_map(client, ST_MAP_TX, memory.data(), memory.length(), 0, -1, &region, nullptr), 0);

  int received = 0, accepting = 0;
  std::thread receiver([&] {
    st_header_t got;
    received = st_rx(connected, &got, nullptr, nullptr);
  });
  std::thread acceptor([&] {
    st_chandle_t another;
    accepting = st_accept(server, &another);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  daemon.stop();
  receiver.join();
  acceptor.join();
  EXPECT_TRUE(means_gone(received)) << received;
  EXPECT_TRUE(means_gone(accepting)) << accepting;

  unsigned value = 12;
  st_chandle_t another = nullptr;
  st_header_t got;
  EXPECT_TRUE(means_gone(send(connected, header(ST_OP_NOP))));
  EXPECT_TRUE(means_gone(poll(connected, got)));
  EXPECT_TRUE(means_gone(st_getopt(connected, ST_OPT_PORT_REMOTE, &value)));
  EXPECT_TRUE(means_gone(st_setopt(client, ST_OPT_RX_SLOTS, &value)));
  EXPECT_TRUE(means_gone(st_connect(client, ":3000", &another)));
  EXPECT_TRUE(means_gone(st_unmap(region)));
  EXPECT_TRUE(means_gone(st_close(connected)));
  EXPECT_EQ(st_close(connected), -EBADF);
}

TEST(DaemonDeath, IsOverOnceADaemonIsThereAgain) {
  std::optional<Daemon> daemon(std::in_place);
  const UseLink first(daemon->link());
  Endpoint orphan(":3000");
  ASSERT_EQ(orphan.error(), 0);
  daemon.reset();
  daemon.emplace();
  const UseLink second(daemon->link());
  Endpoint server(":3000");
  ASSERT_EQ(server.error(), 0);
  EXPECT_EQ(st_listen(server), 0);
}

class Fork : public ConnectedTest {};
STP_BOTH_WAYS(Fork);

TEST_P(Fork, InTheChildNoHandleWorksAndTheParentIsNotDisturbed) {
  const auto child = ::fork();
  if (child == 0) {
    st_header_t got;
    st_ehandle_t created;
    const bool refused = send(connected_, header(ST_OP_NOP)) == -EBADF &&
                         poll(accepted_, got) == -EBADF && st_close(connected_) == -EBADF &&
                         st_delete(client_) == -EBADF && st_create(nullptr, &created) == -EBADF;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  st_header_t got;
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive(accepted_, got), 0);
}

}  // namespace
}  // namespace stp::test
