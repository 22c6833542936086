// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "libst/ipc/shared_memory.h"
#include "tests/stpd/served_socket.h"
#include "tools/stpd/server.h"

namespace stp::test {
namespace {

using ipc::SharedMemory;
using stpd::KeptFiles;

// stpd gives a file up when it drops its SharedMemory; a program keeps a copy of the descriptor.
class KeptFilesTest : public testing::Test {
 protected:
  static constexpr uid_t kUser = 4'711, kOther = 4'712;

  void SetUp() override {
    if (kept.news_fd() < 0) GTEST_SKIP() << "the kernel permits no inotify";
  }
  std::shared_ptr<SharedMemory> hand_out(uid_t user) {
    auto made = SharedMemory::offer("test", 4'096);
    kept.handed_out(user, made->fd(), made);
    programs.emplace_back(::dup(made->fd()));
    return made;
  }
  void look() {
    for (std::size_t i = 0; i < 2 * kMost; ++i) kept.look();
  }
  KeptFiles::Clock::time_point later() { return now += std::chrono::seconds(1); }
  static constexpr std::size_t kMost = 8;
  KeptFiles kept{kMost};
  KeptFiles::Clock::time_point now = KeptFiles::Clock::now();
  std::vector<os::UniqueFd> programs;
};

TEST_F(KeptFilesTest, CountOnceTheyAreGivenUpUntilTheyHaveGone) {
  std::vector<std::shared_ptr<SharedMemory>> used;
  for (std::size_t i = 0; i < 2 * kMost; ++i) used.push_back(hand_out(kUser));
  EXPECT_EQ(kept.too_many(kUser, later()), 0U);
  used.resize(kMost + 1);
  EXPECT_EQ(kept.too_many(kUser, later()), 0U);
  used.resize(kMost);
  EXPECT_EQ(kept.too_many(kUser, later()), kMost);
  EXPECT_EQ(kept.too_many(kOther, now), 0U);
  programs.pop_back();
  look();
  EXPECT_EQ(kept.too_many(kUser, now), 0U);
  used.clear();
  programs.clear();
  look();
  EXPECT_EQ(kept.count(), 0U);
}

TEST_F(KeptFilesTest, AreCountedOnceHoweverOftenTheyAreHandedOut) {
  const auto page = hand_out(kUser);
  for (std::size_t i = 0; i < kMost; ++i) kept.handed_out(kUser, page->fd(), page);
  EXPECT_EQ(kept.count(), 1U);
}

// As when the kernel drops news, because too many wait.
TEST_F(KeptFilesTest, OfWhichNothingIsToldAreLookedFor) {
  constexpr std::size_t kGone = 20;  // more than a digit of their numbers
  for (std::size_t i = 0; i < kGone + kMost; ++i) hand_out(i % 2 == 0 ? kUser : kOther);
  EXPECT_EQ(kept.too_many(kUser, later()), (kGone + kMost) / 2);
  programs.erase(programs.begin(), programs.begin() + kGone);
  std::array<char, 4'096> news;
  while (::read(kept.news_fd(), news.data(), news.size()) > 0) {
  }
  look();
  EXPECT_EQ(kept.count(), kGone + kMost);
  kept.look_at_all();
  EXPECT_EQ(kept.count(), kMost);
  hand_out(kUser);
  for (const auto user : {kUser, kOther}) EXPECT_EQ(kept.too_many(user, later()), 0U);
  programs.clear();
  look();
  EXPECT_EQ(kept.count(), 0U);
}

class FewKeptFiles : public testing::Test, protected stpd::ServedSocket {
 protected:
  static constexpr uid_t kUser = 4'711, kOther = 4'712;
  static constexpr std::size_t kMost = 4;

  FewKeptFiles() {
    open_directory();
    server.set_most_kept(kMost);
    start();
  }
  int hello(uid_t user, std::vector<os::UniqueFd>* kept = nullptr) {
    const auto program = client_of(user);
    const auto result = program->ask(ipc::RequestKind::kHello);
    if (kept != nullptr)
      for (auto& file : program->fds) kept->push_back(std::move(file));
    return result;
  }
};

TEST_F(FewKeptFiles, WhoKeepsThemGetsNoMoreUntilTheyHaveGone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  if (KeptFiles(1).news_fd() < 0) GTEST_SKIP() << "the kernel permits no inotify";
  std::vector<os::UniqueFd> kept;
  for (std::size_t i = 0; i < kMost; ++i) ASSERT_EQ(hello(kUser, &kept), 0);
  EXPECT_TRUE(host::eventually([&] { return hello(kUser) == -EDQUOT; }));
  EXPECT_EQ(hello(kOther), 0);
  kept.clear();
  EXPECT_TRUE(host::eventually([&] { return hello(kUser) == 0; }));
}

}  // namespace
}  // namespace stp::test
