// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/server.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tests/host/eventually.h"
#include "tests/temporary_directory.h"

namespace stp::stpd {
namespace {

class ListenerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kKey = 5;

  void SetUp() override {
    ASSERT_TRUE(epoll);
    ASSERT_EQ(listener.open(path, {}), 0);
    listener.watch(epoll.get(), kKey);
  }
  // The name of the listening socket that a socket comes from, or is connected to.
  static std::string name_of(const os::UniqueFd& accepted) {
    return name_by(::getsockname, accepted);
  }
  static std::string name_of_peer(const os::UniqueFd& connected) {
    return name_by(::getpeername, connected);
  }
  template <typename Call>
  static std::string name_by(Call call, const os::UniqueFd& socket) {
    sockaddr_un name{};
    socklen_t length = sizeof name;
    EXPECT_EQ(call(socket.get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
    return name.sun_path;
  }
  // Whether epoll reports that a client waits.
  bool is_reported() const {
    epoll_event event{};
    return ::epoll_wait(epoll.get(), &event, 1, 0) == 1 && event.data.u64 == kKey;
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  const os::UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  Listener listener;
  os::UniqueFd client;
  int error = 0;
  bool as_operator = false;
};

TEST_F(ListenerTest, IsNotFoundOnceItsFileIsAnotherOrNone) {
  EXPECT_TRUE(listener.is_found());
  ASSERT_EQ(::rename(path.c_str(), (path + ".away").c_str()), 0);
  EXPECT_FALSE(listener.is_found());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(listener.is_found());
  ASSERT_EQ(::rename((path + ".away").c_str(), path.c_str()), 0);
  EXPECT_TRUE(listener.is_found());
}

TEST_F(ListenerTest, IsNotMissedWhereThisUserMayNotLook) {
  ASSERT_EQ(::chmod(directory.path().c_str(), 0), 0);
  const auto before = ::setfsuid(12'345);  // of this thread; root may look anywhere
  struct stat status {};
  EXPECT_NE(::stat(path.c_str(), &status), 0);
  EXPECT_TRUE(listener.is_found());
  ::setfsuid(static_cast<uid_t>(before));
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
}

TEST_F(ListenerTest, AcceptsAClientThatEpollReports) {
  EXPECT_FALSE(is_reported());
  EXPECT_FALSE(listener.accept(error, as_operator));
  EXPECT_EQ(error, EAGAIN);
  ASSERT_EQ(ipc::connect_to(path, client), 0);
  EXPECT_TRUE(is_reported());
  EXPECT_TRUE(listener.accept(error, as_operator));
  EXPECT_EQ(error, 0);
}

TEST_F(ListenerTest, WhilePausedAClientWaitsAndIsNotReported) {
  listener.pause();
  EXPECT_TRUE(listener.is_paused());
  ASSERT_EQ(ipc::connect_to(path, client), 0);
  EXPECT_FALSE(is_reported());
  EXPECT_TRUE(host::eventually([&] {
    listener.resume_if_due();
    return !listener.is_paused();
  }));
  EXPECT_TRUE(is_reported());
}

TEST_F(ListenerTest, APauseEndsWhenAPlaceIsFree) {
  listener.pause();
  ASSERT_EQ(ipc::connect_to(path, client), 0);
  listener.resume();
  EXPECT_TRUE(is_reported());
}

TEST_F(ListenerTest, ItsFilesGoWithIt) {
  ASSERT_EQ(listener.open_for_operators(path, std::nullopt), 0);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  EXPECT_EQ(::access(ipc::operators_socket_of(path).c_str(), F_OK), 0);
  EXPECT_EQ(listener.end().size(), 2U);
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  EXPECT_NE(::access(ipc::operators_socket_of(path).c_str(), F_OK), 0);
  EXPECT_FALSE(listener.is_open());
  EXPECT_TRUE(listener.end().empty());
  listener.resume();  // no harm
}

// Those who have gone again stay in it until they are accepted.
TEST_F(ListenerTest, OperatorsComeInWhileTheBacklogOfAllIsFull) {
  ASSERT_EQ(listener.open_for_operators(path, std::nullopt), 0);
  listener.watch(epoll.get(), kKey);
  constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 1'000};
  constexpr int kMoreThanItHolds = 100'000;
  for (int i = 0; error == 0; ++i) {
    ASSERT_LT(i, kMoreThanItHolds);
    error = ipc::connect_to(path, client, kPatience);
  }
  ASSERT_EQ(error, -EAGAIN);
  ASSERT_EQ(ipc::connect_to_watch(path, client, kPatience), 0);
  EXPECT_EQ(name_of_peer(client), ipc::operators_socket_of(path));
  // It is one of the next two that are accepted.
  int operators = 0;
  for (int i = 0; i < 2; ++i) {
    const auto socket = listener.accept(error, as_operator);
    ASSERT_TRUE(socket);
    EXPECT_EQ(as_operator, name_of(socket) == ipc::operators_socket_of(path));
    operators += name_of(socket) == ipc::operators_socket_of(path) ? 1 : 0;
  }
  EXPECT_EQ(operators, 1);
}

TEST_F(ListenerTest, OthersMayNotOpenTheSocketOfOperators) {
  constexpr gid_t kGroup = 65'529;
  constexpr uid_t kNobody = 65'530;
  struct stat status {};
  ASSERT_EQ(listener.open_for_operators(path, std::nullopt), 0);
  ASSERT_EQ(::stat(ipc::operators_socket_of(path).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give it to a group";
  Listener other;
  const auto elsewhere = directory.path() + "/other";
  ASSERT_EQ(other.open(elsewhere, {}), 0);
  ASSERT_EQ(other.open_for_operators(elsewhere, kGroup), 0);
  ASSERT_EQ(::stat(ipc::operators_socket_of(elsewhere).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660U);
  EXPECT_EQ(status.st_gid, kGroup);
  // Where all may make files, one that another user has made in its place is not taken for it.
  ASSERT_EQ(::chmod(directory.path().c_str(), 01777), 0);
  ASSERT_EQ(::chown(ipc::operators_socket_of(elsewhere).c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(ipc::connect_to_watch(elsewhere, client), 0);
  EXPECT_EQ(name_of_peer(client), elsewhere);
  // Nor is one at which that user listens.
  const os::UniqueFd foreign(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  ASSERT_EQ(ipc::address_of(ipc::operators_socket_of(path), name), 0);
  ASSERT_EQ(::unlink(name.sun_path), 0);
  ASSERT_EQ(::seteuid(kNobody), 0);
  EXPECT_EQ(::bind(foreign.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(::listen(foreign.get(), 1), 0);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(ipc::connect_to_watch(path, client), 0);
  EXPECT_EQ(name_of_peer(client), path);
}

TEST(Listener, OnlyAShortageMakesClientsWait) {
  for (const auto error : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) EXPECT_TRUE(Listener::starved(error));
  for (const auto error : {EAGAIN, EINTR, ECONNABORTED}) EXPECT_FALSE(Listener::starved(error));
}

// `number` tells the clients of a user apart.
WaitingRoom::Guest guest(uid_t user, pid_t number, bool administrator = false) {
  return {{.pid = number, .uid = user, .groups = {}, .administrator = administrator}, {}};
}

// In the order of their turns.
std::vector<pid_t> all_of(WaitingRoom& room) {
  std::vector<pid_t> numbers;
  while (const auto next = room.next()) numbers.push_back(next->who.pid);
  return numbers;
}

TEST(WaitingRoom, UsersHaveTheirTurnOneAfterTheOther) {
  WaitingRoom room(10);
  EXPECT_TRUE(room.empty());
  EXPECT_FALSE(room.next());
  for (const pid_t number : {11, 12, 13, 14}) EXPECT_FALSE(room.enter(guest(1, number)));
  EXPECT_FALSE(room.enter(guest(3, 31)));
  EXPECT_FALSE(room.enter(guest(2, 21)));
  EXPECT_EQ(room.size(), 6U);
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{11, 21, 31, 12, 13, 14}));
  EXPECT_TRUE(room.empty());
}

TEST(WaitingRoom, WhoComesBackHasNoEarlierTurn) {
  WaitingRoom room(10);
  for (const pid_t number : {11, 12}) EXPECT_FALSE(room.enter(guest(1, number)));
  EXPECT_FALSE(room.enter(guest(2, 21)));
  EXPECT_EQ(room.next()->who.pid, 11);
  EXPECT_FALSE(room.enter(guest(1, 13)));
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{21, 12, 13}));
}

TEST(WaitingRoom, OperatorsHaveEverySecondTurn) {
  WaitingRoom room(10);
  for (const pid_t number : {11, 12, 13}) EXPECT_FALSE(room.enter(guest(1, number)));
  for (const pid_t number : {21, 22}) EXPECT_FALSE(room.enter(guest(2, number)));
  for (const pid_t number : {101, 102}) EXPECT_FALSE(room.enter(guest(0, number, true)));
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{11, 101, 21, 102, 12, 22, 13}));
}

TEST(WaitingRoom, InAFullOneTheUserWithTheMostGivesWay) {
  WaitingRoom room(3);
  for (const pid_t number : {11, 12, 13}) EXPECT_FALSE(room.enter(guest(1, number)));
  EXPECT_EQ(room.enter(guest(1, 14))->who.pid, 14);
  EXPECT_EQ(room.enter(guest(2, 21))->who.pid, 13);
  EXPECT_EQ(room.enter(guest(0, 1, true))->who.pid, 12);
  EXPECT_EQ(room.size(), 3U);
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{11, 1, 21}));
}

}  // namespace
}  // namespace stp::stpd
