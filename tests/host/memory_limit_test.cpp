// SPDX-License-Identifier: BSD-3-Clause
#include "libst/os/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/temporary_directory.h"

namespace stp::os {
namespace {

constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();

class MemoryLimit : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& content) const {
    const auto at = folder_ / file;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << content << "\n";
  }
  [[nodiscard]] std::uint64_t limit_of(const std::string& groups) const {
    std::istringstream in(groups);
    return limit_of_groups(in, folder_.path());
  }

 private:
  const test::TemporaryDirectory folder_;
};

TEST_F(MemoryLimit, IsTheLeastOfTheGroupAndOfThoseAbove) {
  write("system.slice/stpd.service/memory.max", "max");
  const std::string groups = "0::/system.slice/stpd.service\n";
  EXPECT_EQ(limit_of(groups), kNone);
  write("system.slice/stpd.service/memory.max", "300000000");
  EXPECT_EQ(limit_of(groups), 300'000'000U);
  write("system.slice/memory.max", "200000000");
  EXPECT_EQ(limit_of(groups), 200'000'000U);
  write("system.slice/stpd.service/memory.high", "100000000");
  EXPECT_EQ(limit_of(groups), 100'000'000U);
  EXPECT_EQ(limit_of("0::/user.slice\n"), kNone) << "that of others";
}

// As an operator writes it to have all of a group's memory given back that can be.
TEST_F(MemoryLimit, OfNothingIsNone) {
  write("memory.high", "0");
  write("memory.max", "67108864");
  EXPECT_EQ(limit_of("0::/\n"), 67'108'864U);
}

// Its own folder is mounted in the place of the one above all.
TEST_F(MemoryLimit, OfAContainerStandsWhereItsGroupsAreMounted) {
  write("memory.max", "67108864");
  EXPECT_EQ(limit_of("0::/\n"), 67'108'864U);
  EXPECT_EQ(limit_of("0::/docker/1234\n"), 67'108'864U);
  EXPECT_EQ(limit_of("0::/../other\n"), 67'108'864U);
}

TEST_F(MemoryLimit, OfTheFirstVersionHasAFolderOfItsOwn) {
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  write("memory/docker/1234/memory.limit_in_bytes", "50000000");
  write("cpu/docker/1234/memory.limit_in_bytes", "1");
  EXPECT_EQ(limit_of("5:cpu,cpuacct:/docker/1234\n4:memory:/docker/1234\n0::/\n"), 50'000'000U);
  EXPECT_EQ(limit_of("4:hugetlb,memory:/docker/1234\n"), 50'000'000U);
  EXPECT_GE(limit_of("4:memory:/docker\n"), memory_of_machine()) << "as the kernel writes none";
}

TEST_F(MemoryLimit, IsNoneWhereNobodyTells) {
  EXPECT_EQ(limit_of(""), kNone);
  EXPECT_EQ(limit_of("nonsense\n::\n0::\n4:memory\n"), kNone);
  EXPECT_GT(memory_to_be_had(), 0U);
  EXPECT_LE(memory_to_be_had(), memory_of_machine());
}

}  // namespace
}  // namespace stp::os
