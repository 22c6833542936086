// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/device_plan.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <numeric>

#include "tests/temporary_directory.h"

namespace stp::port {
namespace {

bool any_cpu(unsigned) {
  return true;
}

std::vector<unsigned> cpus_up_to(unsigned last) {
  std::vector<unsigned> cpus(last + 1);
  std::iota(cpus.begin(), cpus.end(), 0U);
  return cpus;
}

TEST(Lcores, OneMayRunOnAllCpusOfTheProgram) {
  EXPECT_EQ(make_lcores({0, 1, 2, 5, 7, 8}, any_cpu).list, "0@(0-2,5,7-8)");
  EXPECT_EQ(make_lcores({200}, any_cpu).list, "0@(200)");
  EXPECT_FALSE(make_lcores({200}, any_cpu).foreign);
}

TEST(Lcores, OfCpusThatDpdkDoesNotKnowNoneIsNamed) {
  EXPECT_EQ(make_lcores(cpus_up_to(2'047), any_cpu).list, "0@(0-1023)");
  EXPECT_EQ(make_lcores({1, 2, 3, 4}, [](unsigned cpu) { return cpu != 3; }).list, "0@(1-2,4)");
}

// DPDK starts there if the system lets it, and says why if not.
TEST(Lcores, WithoutAnyThatDpdkKnowsAnotherOneIsTried) {
  const Lcores beyond = make_lcores({1'500}, [](unsigned cpu) { return cpu >= 4; });
  EXPECT_EQ(beyond.list, "0@4");
  EXPECT_TRUE(beyond.foreign);
  EXPECT_EQ(make_lcores({}, any_cpu).list, "0@0");
  EXPECT_EQ(make_lcores({}, [](unsigned) { return false; }).list, "0@0");
}

TEST(Lcores, AnErrorSaysWhyDpdkKnowsNoCpu) {
  EXPECT_TRUE(why_foreign({1'500, 1'501}).ends_with("(the first is 1500): permit one below 1024"));
  EXPECT_NE(why_foreign({200}).find("not in /sys/devices/system/cpu"), std::string::npos);
}

class HugepagesTest : public ::testing::Test {
 protected:
  void pages(unsigned kilobytes, unsigned free, unsigned reserved = 0) {
    const auto at = root_ / ("hugepages-" + std::to_string(kilobytes) + "kB");
    std::filesystem::create_directories(at);
    std::ofstream(at / "free_hugepages") << free << '\n';
    std::ofstream(at / "resv_hugepages") << reserved << '\n';
  }
  HugepageChoice choose(int result) {
    return choose_hugepages(root_.path(), [&](std::uint64_t bytes) {
      tried_ = bytes;
      return result;
    });
  }

  test::TemporaryDirectory root_;
  std::uint64_t tried_ = 0;
};

TEST_F(HugepagesTest, AreUsedIfEnoughAreFreeAndOneCanBeHad) {
  pages(2'048, 64);
  EXPECT_TRUE(choose(0).use);
  EXPECT_EQ(tried_, 2U << 20);
  EXPECT_EQ(choose(0).trouble, "");
}

TEST_F(HugepagesTest, ThatCannotBeHadAreNotUsedAndThatIsSaid) {
  pages(2'048, 64);
  const auto choice = choose(ENOMEM);
  EXPECT_FALSE(choice.use);
  EXPECT_NE(choice.trouble.find("hugepages of 2048 KiB are free, but this process gets none"),
            std::string::npos)
      << choice.trouble;
  EXPECT_NE(choice.trouble.find("hugetlb.max"), std::string::npos);
}

TEST_F(HugepagesTest, AFewAreNotWorthWhileAndNoTrouble) {
  pages(2'048, 63);
  EXPECT_FALSE(choose(0).use);
  EXPECT_EQ(choose(ENOMEM).trouble, "");
  pages(2'048, 512, 500);
  EXPECT_FALSE(choose(0).use);
}

TEST_F(HugepagesTest, ADirectoryThatIsMissingHasNone) {
  EXPECT_FALSE(choose_hugepages(root_.path() + "/nowhere", [](std::uint64_t) { return 0; }).use);
}

// Whether this machine has any or not.
TEST_F(HugepagesTest, ATrialLeavesNothingBehind) {
  const int first = try_hugepage(2U << 20);
  EXPECT_EQ(try_hugepage(2U << 20), first);
}

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

TEST_F(RuntimeDirectory, IsMadeForThisUserAlone) {
  EXPECT_TRUE(make_runtime_directory(parent / "dpdk", 7));
  for (const auto& each : {parent / "dpdk", parent / "dpdk" / file_prefix_of(7)})
    EXPECT_EQ(fs::status(each).permissions(), fs::perms::owner_all) << each;
  EXPECT_TRUE(make_runtime_directory(parent / "dpdk", 7)) << "it is there already";
}

TEST_F(RuntimeDirectory, ThatOthersMayChangeIsNone) {
  const auto mine = make(file_prefix_of(7));
  fs::permissions(mine, fs::perms::owner_all | fs::perms::others_write);
  EXPECT_FALSE(make_runtime_directory(parent, 7));
  fs::permissions(mine, fs::perms::owner_all | fs::perms::group_write);
  EXPECT_FALSE(make_runtime_directory(parent, 7));
  fs::permissions(mine, fs::perms::owner_all);
  EXPECT_TRUE(make_runtime_directory(parent, 7));
  fs::permissions(parent, fs::perms::all);
  EXPECT_FALSE(make_runtime_directory(parent, 7)) << "others may put theirs in its place";
  fs::permissions(parent, fs::perms::all | fs::perms::sticky_bit);
  EXPECT_TRUE(make_runtime_directory(parent, 7));
  fs::create_directory_symlink(mine, parent / file_prefix_of(8));
  EXPECT_FALSE(make_runtime_directory(parent, 8)) << "a link";
  std::ofstream(parent / file_prefix_of(9)) << "a file";
  EXPECT_FALSE(make_runtime_directory(parent, 9));
}

TEST_F(RuntimeDirectory, OfAnotherUserIsNone) {
  constexpr uid_t kOther = 12'345;
  const auto mine = make(file_prefix_of(7));
  if (::chown(mine.c_str(), kOther, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "this user cannot give it away";
  EXPECT_FALSE(make_runtime_directory(parent, 7));
  const auto theirs = make("dpdk");
  ASSERT_EQ(::chown(theirs.c_str(), kOther, static_cast<gid_t>(-1)), 0);
  EXPECT_FALSE(make_runtime_directory(theirs, 8));
}

TEST_F(RuntimeDirectory, ThatIsNotThereIsNoTrouble) {
  remove_left_behind(parent / "nowhere");
}

}  // namespace
}  // namespace stp::port
