// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/pci_owner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/temporary_directory.h"

namespace stp::port::pci_owner_test {
namespace {

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
