// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/hugepages.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "tests/temporary_directory.h"

namespace stp::port {
namespace {

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

}  // namespace
}  // namespace stp::port
