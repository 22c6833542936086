// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/owners.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "libst/os/unique_fd.h"
#include "tests/held_file.h"
#include "tests/host/eventually.h"
#include "tests/temporary_directory.h"

namespace stp::port::pci_owner_test {
namespace {

// A child with two threads, which ends with the object.
class TwoThreads {
 public:
  template <typename Work>
  explicit TwoThreads(Work&& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    std::thread([&] {
      work();
      ::pause();
    }).detach();
    ::pause();
  }
  ~TwoThreads() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool is_said_to_have_ended() const {
    return program_of(pid_).ends_with(
        ", pid " + std::to_string(pid_) +
        ", which has ended but for a thread that another program holds up");
  }

 private:
  const pid_t pid_;
};

// As a stpd that was killed while a thread of it waits for the lock of a file.
TEST(ProgramOf, OneThatWasKilledAndHasAThreadThatWaitsIsCalledSo) {
  const os::UniqueFd file(::memfd_create("held", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 1 << 20), 0);
  const auto held = std::make_unique<test::HeldFile>(file.get());
  if (!held->held()) GTEST_SKIP() << "no userfaultfd for faults of the kernel";
  const TwoThreads child([&] { ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK); });
  EXPECT_FALSE(child.is_said_to_have_ended());
  // Until its thread waits for the lock: state D.
  ASSERT_TRUE(host::eventually([&] {
    for (const auto& thread :
         std::filesystem::directory_iterator("/proc/" + std::to_string(child.pid()) + "/task")) {
      std::ifstream stat(thread.path() / "stat");
      std::string text;
      std::getline(stat, text);
      if (text.find(") D ") != std::string::npos) return true;
    }
    return false;
  }));
  EXPECT_FALSE(child.is_said_to_have_ended());
  ASSERT_EQ(::kill(child.pid(), SIGKILL), 0);
  EXPECT_TRUE(host::eventually([&] { return child.is_said_to_have_ended(); }));
  held->release();
}

// pthread_exit() in main().
TEST(ProgramOf, OneWhoseFirstThreadHasEndedByItselfIsNot) {
  const auto first = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // of this thread only
  }
  const auto is_zombie = [&] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string text;
    std::getline(stat, text);
    return text.find(") Z ") != std::string::npos;
  };
  EXPECT_TRUE(host::eventually(is_zombie));
  EXPECT_TRUE(program_of(child).ends_with(", pid " + std::to_string(child))) << program_of(child);
  EXPECT_TRUE(program_of(first).ends_with(", pid " + std::to_string(first)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

constexpr const char* kAddress = "0000:00:03.0";

class PciOwnerTest : public testing::Test {
 protected:
  PciOwnerTest() { std::ofstream{file_}; }
  test::TemporaryDirectory directory_;
  std::string file_ = std::string(directory_.path()) + "/resource0";
  std::string error_;
};

TEST_F(PciOwnerTest, ASecondOneIsToldWhoTheFirstIs) {
  const auto first = PciOwner::claim(kAddress, file_, error_);
  ASSERT_TRUE(first) << error_;
  EXPECT_FALSE(PciOwner::claim(kAddress, file_, error_));
  EXPECT_NE(error_.find("NIC 0000:00:03.0 has an owner: "), std::string::npos) << error_;
  EXPECT_NE(error_.find("pid " + std::to_string(getpid())), std::string::npos) << error_;
}

TEST_F(PciOwnerTest, WhoEndsLeavesNothingBehind) {
  ASSERT_TRUE(PciOwner::claim(kAddress, file_, error_)) << error_;
  EXPECT_TRUE(PciOwner::claim(kAddress, file_, error_)) << error_;
}

TEST_F(PciOwnerTest, AFileThatDoesNotOpenIsNamed) {
  EXPECT_FALSE(PciOwner::claim(kAddress, file_ + "9", error_));
  EXPECT_NE(error_.find(file_ + "9"), std::string::npos) << error_;
}

}  // namespace
}  // namespace stp::port::pci_owner_test

namespace stp::port {
namespace {

class SocketProbe : public ::testing::Test {
 protected:
  ~SocketProbe() override { leave(); }
  // A server of that kind binds the path.
  void bind(int type) {
    leave();
    std::filesystem::remove(path);
    server = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  // It is killed.
  void leave() {
    if (server >= 0) ::close(server);
    server = -1;
  }
  // Whether the server has something to do.
  [[nodiscard]] bool disturbed() const {
    pollfd what{server, POLLIN, 0};
    return ::poll(&what, 1, 0) != 0;
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/socket";
  int server = -1;
};

TEST_F(SocketProbe, AServerIsFoundAndDoesNotNotice) {
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
    bind(type);
    ASSERT_EQ(::listen(server, 0), 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(probe_socket(path), 0) << "whatever its backlog";
    EXPECT_FALSE(disturbed());
  }
}

TEST_F(SocketProbe, OneThatIsAboutToListenIsFoundToo) {
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM}) {
    bind(type);
    EXPECT_EQ(probe_socket(path), 0);
    remove_stale_socket(path);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
}

TEST_F(SocketProbe, WhatAServerLeavesBehindIsNobodysAndIsRemoved) {
  bind(SOCK_SEQPACKET);
  leave();
  EXPECT_EQ(probe_socket(path), ECONNREFUSED);
  remove_stale_socket(path);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(probe_socket(path), ENOENT);
}

TEST_F(SocketProbe, OtherFilesStay) {
  std::ofstream(path) << "precious";
  EXPECT_EQ(probe_socket(path), ECONNREFUSED);
  remove_stale_socket(path);
  EXPECT_EQ(std::filesystem::file_size(path), 8U);
  bind(SOCK_SEQPACKET);
  leave();
  const auto name = path + ".link";
  std::filesystem::create_symlink(path, name);
  remove_stale_socket(name);
  EXPECT_TRUE(std::filesystem::is_symlink(name));
}

TEST_F(SocketProbe, WhatCanBeNoSocketIsNamed) {
  EXPECT_EQ(why_no_socket(path, "/run/a.sock"), "") << "nothing is there";
  std::filesystem::create_symlink("nowhere", path);
  EXPECT_EQ(why_no_socket(path, "/run/a.sock"),
            "a symbolic link that leads nowhere is there: remove it, or name another path");
  std::filesystem::remove(path);
  EXPECT_EQ(why_no_socket("/tmp", "/run/a.sock"),
            "it is a directory: name a file in it, as /tmp/a.sock");
  EXPECT_EQ(why_no_socket("/tmp/", "/run/a.sock"),
            "it is a directory: name a file in it, as /tmp/a.sock");
  std::ofstream(path) << "text";
  EXPECT_EQ(why_no_socket(path, "/run/a.sock"),
            "a file that is no socket is there: name another path, as /run/a.sock");
  bind(SOCK_SEQPACKET);
  EXPECT_EQ(why_no_socket(path, "/run/a.sock"), "");
}

TEST_F(SocketProbe, APathThatIsNoneIsAnError) {
  EXPECT_EQ(probe_socket(""), EINVAL);
  EXPECT_EQ(probe_socket(std::string("a\0b", 3)), EINVAL);
  EXPECT_EQ(probe_socket(std::string(200, 'x')), ENAMETOOLONG);
}

}  // namespace
}  // namespace stp::port
