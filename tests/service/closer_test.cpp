// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/closer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "tests/lingering_socket.h"
#include "tests/service/eventually.h"
#include "tests/service/fuse_file.h"

namespace stp::service {
namespace {

TEST(Closer, OneUsersDescriptorsHoldUpThoseOfNoOther) {
  test::FuseFile fuse;
  if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
  Closer closer;
  for (int i = 0; i < 5; ++i) closer.close(1, UniqueFd(::fcntl(fuse.fd(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(eventually([&] { return fuse.flushes() == Closer::kThreadsPerUser; }));
  EXPECT_EQ(closer.waiting(1), 5U);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reader(pipe[0]);
  closer.close(2, UniqueFd(pipe[1]));
  char byte;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
  EXPECT_TRUE(eventually([&] { return closer.waiting(2) == 0; }));
  ASSERT_TRUE(eventually([&] { return closer.lost(1) == Closer::kThreadsPerUser; }));
  EXPECT_EQ(closer.lost(2), 0U);
  EXPECT_EQ(closer.who_holds_up(), uid_t{1});
}

TEST(Closer, UsersLeaveThreadsToOperators) {
  test::FuseFile fuse;
  if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
  Closer closer;
  const auto lend = [&](uid_t user) {
    for (unsigned i = 0; i < Closer::kThreadsPerUser; ++i)
      closer.close(user, UniqueFd(::fcntl(fuse.fd(), F_DUPFD_CLOEXEC, 0)));
  };
  constexpr auto kOfUsers = Closer::kThreads - Closer::kThreadsOfOperators;
  const auto operating = ::geteuid();
  for (uid_t user = 1; user <= Closer::kThreads; ++user) lend(operating + user);
  ASSERT_TRUE(eventually([&] { return fuse.flushes() == kOfUsers; }));
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reader(pipe[0]);
  closer.close(operating, UniqueFd(pipe[1]));
  char byte;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
  EXPECT_EQ(fuse.flushes(), kOfUsers);
}

TEST(Closer, ClosesWhatWouldWaitForItsPeer) {
  Closer closer;
  for (int i = 0; i < 20; ++i) {
    test::LingeringSocket socket;
    closer.close(1, std::move(socket.fd));
  }
  EXPECT_TRUE(eventually([&] { return closer.waiting() == 0; }));
}

}  // namespace
}  // namespace stp::service
