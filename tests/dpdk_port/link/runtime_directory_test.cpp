// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/runtime_directory.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "tests/temporary_directory.h"

namespace stp::port {
namespace {

namespace fs = std::filesystem;

class RuntimeDirectory : public testing::Test {
 protected:
  fs::path make(const std::string& name) {
    fs::create_directory(parent / name);
    return parent / name;
  }
  // A socket that is listened to for as long as the descriptor is open.
  static int serve(const fs::path& directory) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = (directory / "dpdk_telemetry.v2").string();
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 1), 0);
    return fd;
  }
  static void make_old(const fs::path& directory) {
    fs::last_write_time(directory, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  }
  static pid_t process_that_has_ended() {
    const auto pid = ::fork();
    if (pid == 0) ::_exit(0);
    ::waitpid(pid, nullptr, 0);
    return pid;
  }

  test::TemporaryDirectory directory;
  const fs::path parent = directory.path();
};

TEST_F(RuntimeDirectory, OfAProcessThatHasEndedIsRemovedWithItsSocket) {
  const auto left = make(file_prefix_of(process_that_has_ended()));
  ::close(serve(left));
  make_old(left);
  remove_left_behind(parent);
  EXPECT_FALSE(fs::exists(left));
}

// Its pid is unknown here if it is in another pid namespace, and DPDK makes its socket last.
TEST_F(RuntimeDirectory, OfAProcessThatStartsStays) {
  const auto starting = make(file_prefix_of(process_that_has_ended()));
  remove_left_behind(parent);
  EXPECT_TRUE(fs::exists(starting));
}

TEST_F(RuntimeDirectory, OfAProcessThatRunsStays) {
  const auto own = make(file_prefix_of(::getpid()));
  remove_left_behind(parent);
  EXPECT_TRUE(fs::exists(own));
}

TEST_F(RuntimeDirectory, OfAProcessThatOnlyItsSocketShowsStays) {
  const auto elsewhere = make(file_prefix_of(process_that_has_ended()));
  const auto fd = serve(elsewhere);
  make_old(elsewhere);
  remove_left_behind(parent);
  EXPECT_TRUE(fs::exists(elsewhere));
  ::close(fd);
}

TEST_F(RuntimeDirectory, OfOtherProgramsStays) {
  const auto ended = std::to_string(process_that_has_ended());
  for (const auto& name : {"rte", "stp-", "stp-x", "stp-1x"}) make(name);
  make("testpmd-" + ended);
  for (const auto& name : directory.names()) make_old(parent / name);
  remove_left_behind(parent);
  EXPECT_EQ(directory.names().size(), 5U);
}

TEST_F(RuntimeDirectory, ThatIsNotThereIsNoTrouble) {
  remove_left_behind(parent / "nowhere");
}

}  // namespace
}  // namespace stp::port
