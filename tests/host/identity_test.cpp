// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/identity.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "libst/ipc/socket.h"
#include "tests/temporary_directory.h"

namespace stp::host {
namespace {

constexpr uid_t kProgramUser = 4'711;
constexpr gid_t kOwnGroup = 4'712, kSecondGroup = 4'713, kOtherGroup = 4'714;

bool has_ended(const os::UniqueFd& process, int milliseconds) {
  pollfd look{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, milliseconds) == 1;
}

// A listener, and a program that connects to it: a child of this process, which ends with the test.
class IdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
    ::chmod(directory.path().c_str(), 0755);
  }
  ~IdentityTest() override {
    if (program > 0) end_program();
  }
  // Connects as this user, or as kProgramUser with two groups.
  void start_program(bool as_other) {
    program = ::fork();
    if (program == 0) {
      if (as_other) {
        const std::array groups{kSecondGroup};
        if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(kOwnGroup) != 0 ||
            ::setuid(kProgramUser) != 0)
          ::_exit(1);
      }
      os::UniqueFd own;
      if (ipc::connect_to(path, own) != 0) ::_exit(1);
      for (;;) ::pause();
    }
    pollfd look{.fd = listener.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&look, 1, 30'000), 1);
    socket.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(socket);
  }
  void end_program() {
    ::kill(program, SIGKILL);
    EXPECT_EQ(::waitpid(program, nullptr, 0), program);
    program = -1;
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  os::UniqueFd listener, socket;
  ipc::SocketFile file;
  pid_t program = -1;
};

TEST_F(IdentityTest, AProgramOfTheSameUserIsAnAdministrator) {
  start_program(false);
  const auto who = identify_peer(socket.get());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->pid, program);
  EXPECT_EQ(who->uid, ::geteuid());
  EXPECT_TRUE(who->administrator);
}

TEST_F(IdentityTest, AProgramOfAnotherUserIsOneOnlyInTheGroupOfAdministrators) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  start_program(true);
  const auto who = identify_peer(socket.get());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->uid, kProgramUser);
  // What a connection takes before it has its turn does not depend on the number of its groups.
  EXPECT_EQ(who->groups, (std::vector<gid_t>{kOwnGroup}));
  const auto in = [&](std::optional<gid_t> group) {
    auto with_groups = *who;
    find_groups(socket.get(), group, with_groups);
    EXPECT_EQ(with_groups.groups, (std::vector<gid_t>{kOwnGroup, kSecondGroup}));
    return with_groups.administrator;
  };
  EXPECT_FALSE(in(std::nullopt));
  EXPECT_FALSE(in(kOtherGroup));
  EXPECT_TRUE(in(kOwnGroup));
  EXPECT_TRUE(in(kSecondGroup));
}

TEST_F(IdentityTest, TheEndOfAProgramIsSeen) {
  start_program(false);
  os::UniqueFd process;
  ASSERT_EQ(open_process(socket.get(), program, process), 0);
  if (!process) GTEST_SKIP() << "this kernel has no descriptors of processes";
  EXPECT_FALSE(has_ended(process, 0));
  const auto pid = program;
  end_program();
  EXPECT_TRUE(has_ended(process, 30'000));
  EXPECT_EQ(open_process(socket.get(), pid, process), -ESRCH);
}

}  // namespace
}  // namespace stp::host
