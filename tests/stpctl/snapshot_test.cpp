// SPDX-License-Identifier: BSD-3-Clause
// The test is the daemon.
#include "tools/stpctl/snapshot.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "tests/temporary_directory.h"
#include "tools/stpctl/commands.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {
namespace {

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    ipc::SocketFile file;
    EXPECT_EQ(ipc::listen_at(path, listener, file), 0);
    client.emplace(path);
    daemon.reset(::accept(listener.get(), nullptr, nullptr));
  }
  // Sends the reply to a later request.
  void will_reply(int result, const char* counter = "") const {
    ipc::ReplyMessage reply;
    auto& stats = reply.begin<ask::Stats>();
    stats.value = 5;
    ipc::set_text(stats.name, counter);
    if (result != 0) reply.refuse(result);
    ASSERT_EQ(ipc::send_reply(daemon.get(), reply, {}, ipc::Wait::kDontWait), 0);
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  os::UniqueFd listener, daemon;
  std::optional<DaemonClient> client;
};

TEST_F(SnapshotTest, CountersAreReadToTheirEnd) {
  will_reply(0, "rx_frames");
  will_reply(0, "tx_frames");
  will_reply(-ENOENT);
  const auto counters = read_counters(*client, {});
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters[1].name, "tx_frames");
  EXPECT_EQ(counters[1].value, 5U);
}

TEST_F(SnapshotTest, ALinkHasItsIpv4AddressOrItsIpv6Address) {
  struct Case {
    const char* device;
    std::uint32_t ipv4;
    std::optional<std::string> address;
  };
  for (const Case& each :
       {Case{"10.9.0.1/8181", 0x0a090001, "10.9.0.1"}, Case{"[2001:db8::5]/8181", 0, "2001:db8::5"},
        Case{"[::]/8181", 0, std::nullopt}, Case{"[fe80::1%eth0]", 0, "fe80::1%eth0"},
        Case{"[fe80", 0, std::nullopt}, Case{"eth0", 0, std::nullopt}}) {
    ipc::ReplyMessage reply;
    auto& link = reply.begin<ask::AdminLink>();
    link.shards = 1;
    link.ipv4 = each.ipv4;
    ipc::set_text(link.device, each.device);
    ASSERT_EQ(ipc::send_reply(daemon.get(), reply, {}, ipc::Wait::kDontWait), 0);
    EXPECT_EQ(read_link(*client).address, each.address) << each.device;
  }
}

TEST_F(SnapshotTest, AnErrorIsNotTheEndOfTheCounters) {
  will_reply(0, "rx_frames");
  will_reply(-EPERM);
  try {
    read_counters(*client, {});
    ADD_FAILURE() << "no error";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.what(), "daemon at " + path + ": " + std::strerror(EPERM));
  }
}

TEST(SnapshotOfAStranger, IsNotTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const test::TemporaryDirectory directory;
  const auto path = directory.path() + "/stpd.sock";
  ASSERT_EQ(::chmod(directory.path().c_str(), 01777), 0);
  os::UniqueFd listener;
  ipc::SocketFile file;
  std::thread([&] {
    ASSERT_EQ(::syscall(SYS_setresuid, -1, 65'530, -1), 0);  // of this thread
    ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  }).join();
  try {
    const DaemonClient client(path);
    ADD_FAILURE() << "no error";
  } catch (const Failure& failure) {
    const std::string text = failure.what();
    EXPECT_EQ(text.find("daemon at " + path + ": user 65530 serves this socket"), 0U) << text;
  }
}

// Sockets of a daemon that is stopped: the kernel takes connections and requests.
TEST(SeveralLinks, OfAStoppedDaemonTakeLittleMoreTimeThanOne) {
  constexpr std::chrono::milliseconds kPatience{500};
  const test::TemporaryDirectory directory;
  std::vector<os::UniqueFd> listeners(3);
  Options options;
  options.patience = kPatience;
  for (auto& listener : listeners) {
    options.sockets.push_back(directory.path() + "/" + std::to_string(options.sockets.size()));
    ipc::SocketFile file;
    ASSERT_EQ(ipc::listen_at(options.sockets.back(), listener, file), 0);
  }
  for (auto* const show : {show_links, show_connections, show_stats}) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      show(options);
      ADD_FAILURE() << "no error";
    } catch (const Failure& failure) {
      const std::string text = failure.what();
      EXPECT_NE(text.find("0: it has not answered for 0.5 seconds"), std::string::npos) << text;
      for (const auto& socket : options.sockets)
        EXPECT_NE(text.find("daemon at " + socket), std::string::npos) << text;
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, kPatience);
    EXPECT_LT(took, 3 * kPatience);
  }
}

TEST(Interrupted, StpctlWaitsNoLongerForADaemonThatIsStopped) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() + "/stpd.sock";
  os::UniqueFd listener;
  ipc::SocketFile file;
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  // In a process of its own: what was interrupted remains so.
  EXPECT_EXIT(
      {
        watch_for_interrupts();
        let_interrupts_in();
        DaemonClient client(path, std::chrono::milliseconds(500));
        ::raise(SIGINT);
        try {
          read_counters(client, {});
        } catch (const Silence& silence) {
          std::fputs(silence.what(), stderr);
          ::_exit(1);
        }
      },
      testing::ExitedWithCode(1), "interrupted, and it does not answer: is it stopped\\?");
}

}  // namespace
}  // namespace stp::stpctl
