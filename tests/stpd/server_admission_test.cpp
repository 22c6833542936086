// SPDX-License-Identifier: BSD-3-Clause
// Many clients connect at once: each user has its turn, and those who have gone again take
// nobody's.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_socket.h"

namespace stp::stpd {
namespace {

constexpr uid_t kCrowd = 47'110;
constexpr int kMany = 60;  // fewer than the lines of a user that the log takes

class ServerAdmission : public testing::Test, protected ServedSocket {
 protected:
  ServerAdmission() {
    open_directory();
    EXPECT_EQ(logging.listen(), 0);
    loop.start();
  }
  ~ServerAdmission() override { logging.stop(); }
  // Of the crowd, in the backlog.
  std::vector<std::unique_ptr<RawClient>> crowd() const {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < kMany; ++i) {
      clients.push_back(client_of(kCrowd));
      EXPECT_TRUE(clients.back() && clients.back()->connected);
    }
    return clients;
  }
  // The log says who was admitted, in order.
  std::size_t admitted_before(uid_t user) {
    std::lock_guard const guard(mutex);
    const auto own = "uid " + std::to_string(user);
    const auto first = std::ranges::find_if(lines, [&](const std::string& line) {
      return line.find("connected") != std::string::npos && line.ends_with(own);
    });
    return static_cast<std::size_t>(first - lines.begin());
  }
  std::size_t lines_of(const std::string& what) {
    std::lock_guard const guard(mutex);
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(what) != std::string::npos; }));
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  unsigned infos = 0;  // lines at that level
  Server logging{service, path, [this](LogLevel level, const std::string& line) {
                   std::lock_guard const guard(mutex);
                   if (level == LogLevel::kInfo) ++infos;
                   lines.push_back(line);
                 }};
};

TEST_F(ServerAdmission, NobodyWaitsForTheClientsOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  const auto others = crowd();
  RawClient own(path);
  ASSERT_EQ(logging.start(), 0);
  EXPECT_EQ(own.ask(ipc::RequestKind::kHello), 0);
  EXPECT_LE(admitted_before(::geteuid()), 2U) << "one of the crowd has its turn first";
  EXPECT_TRUE(host::eventually(
      [&] { return logging.counts().clients + logging.counts().refused == kMany + 1; }));
}

TEST_F(ServerAdmission, WhoHasGoneAgainIsNotAdmitted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  crowd();
  RawClient own(path);
  ASSERT_EQ(logging.start(), 0);
  EXPECT_EQ(own.ask(ipc::RequestKind::kHello), 0);
  EXPECT_EQ(lines_of("uid " + std::to_string(kCrowd)), 0U);
  EXPECT_EQ(logging.counts().refused, 0U);
  EXPECT_EQ(logging.counts().clients, 1U);
}

// Each question of stpctl is a client.
TEST_F(ServerAdmission, OnlyClientsThatUseTheLinkAreLoggedAtInfo) {
  ASSERT_EQ(logging.start(), 0);
  for (int i = 0; i < 3; ++i) {
    RawClient asks(path);
    EXPECT_EQ(asks.ask(ipc::RequestKind::kAdminLink), 0);
  }
  EXPECT_TRUE(host::eventually([&] { return lines_of(" gone: ") == 3; }));
  EXPECT_EQ(infos, 0U);
  {
    RawClient program(path);
    EXPECT_EQ(program.ask(ipc::RequestKind::kHello), 0);
  }
  EXPECT_TRUE(host::eventually([&] { return lines_of(" gone: ") == 4; }));
  EXPECT_EQ(infos, 2U);
  EXPECT_EQ(lines_of("uses the link: pid "), 1U);
}

// The program hears a number only.
TEST_F(ServerAdmission, TheLogSaysWhyAClientGetsNoPages) {
  ASSERT_EQ(logging.start(), 0);
  RawClient program(path);
  ASSERT_TRUE(program.connected);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = program.ask(ipc::RequestKind::kHello);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(result, -EFBIG);
  EXPECT_EQ(lines_of("gets no pages: File too large: stpd may not make files so large; raise "),
            1U);
}

// What they have not read is in the daemon's memory, and its descriptors count as the daemon's.
TEST_F(ServerAdmission, AUserWhoseProgramsLeaveRepliesUnreadGetsNoMoreInUntilTheyAreRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  ASSERT_EQ(logging.start(), 0);
  std::vector<std::unique_ptr<RawClient>> deaf;
  const auto hello = host::request_for(ipc::RequestKind::kHello);
  for (std::size_t i = 0; i < ForeignFiles::kMostUnread; ++i) {
    deaf.push_back(client_of(kCrowd));
    ASSERT_TRUE(deaf.back() && deaf.back()->connected);
    for (int twice = 0; twice < 2; ++twice) send_request(deaf.back()->socket.get(), hello, {});
    pollfd end{.fd = deaf.back()->socket.get(), .events = 0, .revents = 0};
    ASSERT_EQ(::poll(&end, 1, 30'000), 1) << "who asks again before it reads is disconnected";
  }
  EXPECT_TRUE(
      host::eventually([&] { return lines_of("does not read its replies") == deaf.size(); }));
  EXPECT_EQ(logging.counts().slow_readers, deaf.size());
  EXPECT_NE(client_of(kCrowd)->ask(ipc::RequestKind::kHello), 0);
  EXPECT_EQ(lines_of("have not read their last replies"), 1U);
  EXPECT_EQ(client_of(kCrowd + 1)->ask(ipc::RequestKind::kHello), 0);
  std::vector<os::UniqueFd> fds;
  EXPECT_EQ(receive_reply(deaf.front()->socket.get(), deaf.front()->reply, fds), 0);
  EXPECT_EQ(client_of(kCrowd)->ask(ipc::RequestKind::kHello), 0);
}

TEST_F(ServerAdmission, NobodySendsDescriptorsBeforeItIsAdmitted) {
  RawClient early(path);
  const os::UniqueFd file(::eventfd(0, EFD_CLOEXEC));
  const std::array fds{file.get()};
  const auto sent =
      send_request(early.socket.get(), host::request_for(ipc::RequestKind::kMap), fds);
  if (sent == 0) GTEST_SKIP() << "this kernel cannot forbid them (Linux before 6.16)";
  EXPECT_EQ(sent, -EPERM);
  ASSERT_EQ(logging.start(), 0);
  EXPECT_EQ(early.ask(ipc::RequestKind::kHello), 0);
  EXPECT_EQ(send_request(early.socket.get(), host::request_for(ipc::RequestKind::kMap), fds), 0);
}

}  // namespace
}  // namespace stp::stpd
