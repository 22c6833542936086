// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/workers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/host/eventually.h"
#include "tests/lingering_socket.h"
#include "tests/stpd/fuse_file.h"

namespace stp::stpd {
namespace {

constexpr uid_t kSender = 4'711, kOtherSender = 4'712;

class ForeignFilesTest : public testing::Test {
 protected:
  ForeignFilesTest() : file(::eventfd(0, EFD_CLOEXEC)) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    here.reset(pair[0]);
    client.reset(pair[1]);
    files.begin_receiving();
  }
  ~ForeignFilesTest() override { files.end_receiving(); }
  // Receives a request with one descriptor.
  int receive(uid_t user) {
    const std::array fds{file.get()};
    EXPECT_EQ(send_request(client.get(), ipc::RequestMessage(ask::Hello{}), fds), 0);
    return files.receive(here.get(), user, request, received);
  }

  const os::UniqueFd file;
  os::UniqueFd here, client;
  ForeignFiles files{2 * ipc::kMostFds};
  ipc::RequestMessage request;
  std::vector<os::UniqueFd> received;
};

TEST_F(ForeignFilesTest, TakesWhatAClientSendsAndClosesIt) {
  EXPECT_EQ(receive(kSender), 0);
  EXPECT_EQ(received.size(), 1U);
  files.close(kSender, received);
  EXPECT_TRUE(received.empty());
  EXPECT_FALSE(files.is_stuck(kSender));
  EXPECT_EQ(files.receive(here.get(), kSender, request, received), -EAGAIN);
}

TEST_F(ForeignFilesTest, AClientSeesTheEndOfItsConnectionAtOnce) {
  // Closing it alone would not end it.
  const os::UniqueFd another(::fcntl(here.get(), F_DUPFD_CLOEXEC, 0));
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  files.hang_up(kSender, std::move(here));
  ipc::ReplyMessage reply;
  EXPECT_EQ(receive_reply(client.get(), reply, received), -ECONNRESET);
}

TEST_F(ForeignFilesTest, AUserWhoseDescriptorCannotBeClosedMaySendNoMoreAndOthersMay) {
  test::FuseFile fuse;
  if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
  received.emplace_back(::fcntl(fuse.fd(), F_DUPFD_CLOEXEC, 0));
  files.close(kSender, received);
  std::optional<ForeignFiles::Lost> lost;
  ASSERT_TRUE(host::eventually([&] { return (lost = files.tend()).has_value(); }));
  EXPECT_EQ(lost->more, 1U);
  EXPECT_EQ(lost->user, kSender);
  EXPECT_FALSE(files.tend()) << "each is reported once";
  EXPECT_TRUE(files.has_lost(kSender));
  EXPECT_TRUE(files.is_stuck(kSender));
  EXPECT_FALSE(files.is_stuck(kOtherSender));
  EXPECT_EQ(receive(kSender), -EMFILE);
  EXPECT_TRUE(received.empty());
  EXPECT_EQ(receive(kOtherSender), 0);
  EXPECT_EQ(received.size(), 1U);
}

TEST(Closer, OneUsersDescriptorsHoldUpThoseOfNoOther) {
  test::FuseFile fuse;
  if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
  Closer closer;
  for (int i = 0; i < 5; ++i) closer.close(1, os::UniqueFd(::fcntl(fuse.fd(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(host::eventually([&] { return fuse.flushes() == Closer::kThreadsPerUser; }));
  EXPECT_EQ(closer.waiting(1), 5U);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd reader(pipe[0]);
  closer.close(2, os::UniqueFd(pipe[1]));
  char byte;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
  EXPECT_TRUE(host::eventually([&] { return closer.waiting(2) == 0; }));
  ASSERT_TRUE(host::eventually([&] { return closer.lost(1) == Closer::kThreadsPerUser; }));
  EXPECT_EQ(closer.lost(2), 0U);
  EXPECT_EQ(closer.who_holds_up(), uid_t{1});
}

TEST(Closer, UsersLeaveThreadsToOperators) {
  Closer closer;
  test::FuseFile fuse;  // ends first, and lets its threads go
  if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
  const auto lend = [&](uid_t user) {
    for (unsigned i = 0; i < Closer::kThreadsPerUser; ++i)
      closer.close(user, os::UniqueFd(::fcntl(fuse.fd(), F_DUPFD_CLOEXEC, 0)));
  };
  constexpr auto kOfUsers = Closer::kThreads - Closer::kThreadsOfOperators + Closer::kFirstThreads;
  const auto operating = ::geteuid();
  for (uid_t user = 1; user <= kOfUsers; ++user) lend(operating + user);
  ASSERT_TRUE(host::eventually([&] { return fuse.flushes() == kOfUsers; }));
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd reader(pipe[0]);
  closer.close(operating, os::UniqueFd(pipe[1]));
  char byte;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
  EXPECT_EQ(fuse.flushes(), kOfUsers);
}

// As one person with many uids can.
TEST(Closer, AUserWithNoThreadGetsOneWhenOthersHoldManyOfThem) {
  Closer closer;
  test::FuseFile fuse;  // ends first, and lets its threads go
  if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
  constexpr auto kHeld = Closer::kThreads - Closer::kThreadsOfOperators;
  for (uid_t user = 1; user <= kHeld / Closer::kThreadsPerUser; ++user)
    for (unsigned i = 0; i < Closer::kThreadsPerUser; ++i)
      closer.close(100'000 + user, os::UniqueFd(::fcntl(fuse.fd(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(host::eventually([&] { return fuse.flushes() == kHeld; }));
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd reader(pipe[0]);
  closer.close(200'000, os::UniqueFd(pipe[1]));
  pollfd closed{.fd = reader.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, 10'000), 1);
}

TEST(Closer, ClosesWhatWouldWaitForItsPeer) {
  Closer closer;
  for (int i = 0; i < 20; ++i) {
    test::LingeringSocket socket;
    closer.close(1, std::move(socket.fd));
  }
  EXPECT_TRUE(host::eventually([&] { return closer.waiting() == 0; }));
}

}  // namespace
}  // namespace stp::stpd
