// SPDX-License-Identifier: BSD-3-Clause
// Whose sockets a program uses: another user serves them, at each kind of place.
#include "libst/ipc/socket.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include "libst/os/unique_fd.h"
#include "tests/temporary_directory.h"

namespace stp::test {
namespace {

class ServedByAnother : public testing::Test {
 protected:
  static constexpr uid_t kServer = 65'530, kThird = 65'531;
  static constexpr mode_t kOfAll = 01777;  // as /tmp

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    open_to(0755);
  }
  void open_to(mode_t mode) const { ASSERT_EQ(::chmod(directory.path().c_str(), mode), 0); }
  // Runs `work` as that user. The system call changes only its thread.
  template <typename Work>
  static void as(uid_t user, Work&& work) {
    std::thread([&] {
      ASSERT_EQ(::syscall(SYS_setresuid, -1, user, -1), 0);
      work();
    }).join();
  }
  void serve(const std::string& path, uid_t user = kServer) {
    as(user, [&] { ASSERT_EQ(ipc::listen_at(path, listener, file), 0) << path; });
  }
  // A directory of that user in which it serves a socket.
  std::string served_in(const std::string& name, uid_t user = kServer) {
    EXPECT_EQ(::mkdir(name.c_str(), 0755), 0);
    EXPECT_EQ(::chown(name.c_str(), user, user), 0);
    serve(name + "/socket", user);
    return name + "/socket";
  }
  int connect(const std::string& path) {
    why.clear();
    return ipc::connect_to(path, client, {}, &why);
  }
  [[nodiscard]] bool says(const std::string& text) const {
    return why.find(text) != std::string::npos;
  }

  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/socket";
  ipc::SocketFile file;
  os::UniqueFd listener, client;
  std::string why;
};

TEST_F(ServedByAnother, IsRefusedWhereAllMayMakeFiles) {
  open_to(kOfAll);
  serve(path);
  EXPECT_EQ(connect(path), -EPERM);
  EXPECT_FALSE(client);
  EXPECT_TRUE(says("user 65530 serves this socket, and others may make files in " +
                   directory.path() + ": "))
      << why;
  EXPECT_TRUE(
      says("Let root run stpd, or user 65530 this program, or put the socket where only root, "
           "this user or that of stpd may make files, as /run/stpd/stpd.sock"))
      << why;
}

TEST_F(ServedByAnother, IsTrustedInADirectoryOfItsOwnThatRootHasMade) {
  const auto served = served_in(directory.path() + "/own");
  EXPECT_EQ(connect(served), 0) << why;
  as(kThird, [&] { EXPECT_EQ(connect(served), 0) << why; });
  for (const auto mode : {0775, 0757, 01777}) {
    ASSERT_EQ(::chmod((directory.path() + "/own").c_str(), mode), 0);
    EXPECT_EQ(connect(served), -EPERM) << mode;
    EXPECT_TRUE(says("others may make files in " + directory.path() + "/own")) << why;
  }
}

// As /tmp/stp-alice, which is not alice's.
TEST_F(ServedByAnother, IsRefusedInADirectoryThatItHasMadeWhereAllMay) {
  open_to(kOfAll);
  EXPECT_EQ(connect(served_in(directory.path() + "/own")), -EPERM);
  EXPECT_TRUE(says("others may make files in " + directory.path() + ":")) << why;
}

TEST_F(ServedByAnother, IsRefusedBelowADirectoryOfAThirdUser) {
  ASSERT_EQ(::mkdir((directory.path() + "/third").c_str(), 0755), 0);
  const auto served = served_in(directory.path() + "/third/own");
  EXPECT_EQ(connect(served), 0) << why;
  ASSERT_EQ(::chown((directory.path() + "/third").c_str(), kThird, kThird), 0);
  EXPECT_EQ(connect(served), -EPERM);
  EXPECT_TRUE(says("user 65531 may make files in " + directory.path() + "/third:")) << why;
}

TEST_F(ServedByAnother, CountsAllDirectoriesThatLinksLeadThrough) {
  const auto served = served_in(directory.path() + "/own");
  const auto all = directory.path() + "/all", link = all + "/link";
  ASSERT_EQ(::mkdir(all.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(all.c_str(), kOfAll), 0);
  ASSERT_EQ(::symlink("../own", link.c_str()), 0);
  EXPECT_EQ(connect(link + "/socket"), -EPERM)
      << "others may have moved it there, though it is root's";
  ASSERT_EQ(::lchown(link.c_str(), kServer, kServer), 0);
  EXPECT_EQ(connect(link + "/socket"), -EPERM);
  EXPECT_TRUE(says("others may make files in " + all + ":")) << why;
  // A link of root that leads through it.
  ASSERT_EQ(::symlink((link + "/socket").c_str(), path.c_str()), 0);
  EXPECT_EQ(connect(path), -EPERM);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::symlink(served.c_str(), path.c_str()), 0);
  EXPECT_EQ(connect(path), 0) << why;
}

TEST_F(ServedByAnother, IsFoundThroughALinkThatEndsInASlash) {
  served_in(directory.path() + "/own");
  const auto link = directory.path() + "/link";
  ASSERT_EQ(::symlink((directory.path() + "/own/").c_str(), link.c_str()), 0);
  EXPECT_EQ(connect(link + "/socket"), 0) << why;
}

TEST_F(ServedByAnother, IsFoundThroughTheRootOfItsProcess) {
  const auto served = served_in(directory.path() + "/own");
  EXPECT_EQ(connect("/proc/self/root" + served), 0) << why;
}

TEST_F(ServedByAnother, IsTrustedEverywhereIfItIsRootOrTheSameUser) {
  open_to(kOfAll);
  serve(path, 0);
  as(kThird, [&] { EXPECT_EQ(connect(path), 0) << why; });
  file.remove();
  serve(path, kThird);
  as(kThird, [&] { EXPECT_EQ(connect(path), 0) << why; });
}

// A user can mount a file system there that says it is root's.
TEST_F(ServedByAnother, IsRefusedInWhatIsMountedWhereAllMayMakeFiles) {
  open_to(kOfAll);
  const auto mounted = directory.path() + "/mounted";
  ASSERT_EQ(::mkdir(mounted.c_str(), 0755), 0);
  const auto child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
        ::mount("tmpfs", mounted.c_str(), "tmpfs", 0, "mode=0755"))
      ::_exit(77);
    const auto path = mounted + "/socket";
    const os::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (file.bind(socket.get(), path, {}) != 0) ::_exit(2);
    as(kServer, [&] { ::listen(socket.get(), 1); });
    ::_exit(connect(path) == -EPERM ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "nothing can be mounted";
  EXPECT_EQ(status, 0);
}

// There all of them have one number, that of this process as well.
TEST_F(ServedByAnother, IsNotTakenForThisUserInANamespaceWithoutUsers) {
  open_to(kOfAll);
  serve(path);
  const auto child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    ::_exit(connect(path) == -EPERM && says("others may make files in ") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace";
  EXPECT_EQ(status, 0);
}

// A user namespace has a user of the number by which the kernel shows those that it does not have.
TEST_F(ServedByAnother, IsNotTakenForTheUserOfTheNumberThatAllOthersHave) {
  constexpr uid_t kShown = 65'534;
  open_to(kOfAll);
  serve(path);
  int ready[2], mapped[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(mapped), 0);
  char byte = 0;
  const auto child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    const bool told = ::write(ready[1], "", 1) == 1 && ::read(mapped[0], &byte, 1) == 1;
    if (!told || ::setresuid(kShown, kShown, kShown) != 0) ::_exit(2);
    ::_exit(connect(path) == -EPERM && says("others may make files in ") ? 0 : 1);
  }
  ::close(ready[1]);
  if (::read(ready[0], &byte, 1) == 1) {
    std::ofstream("/proc/" + std::to_string(child) + "/uid_map") << "0 100000 65536";
    EXPECT_EQ(::write(mapped[1], "", 1), 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  for (const int end : {ready[0], mapped[0], mapped[1]}) ::close(end);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stp::test
