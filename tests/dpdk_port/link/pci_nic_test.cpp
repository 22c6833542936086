// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/inventory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temporary_directory.h"

namespace stp::port {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAddress = "0000:3b:00.0";
constexpr std::uint64_t kPinned = std::uint64_t{64} << 20;
constexpr PciRights kAll{
    .hugepages = true, .opens_group = true, .locks_without_limit = true, .memlock = 0};

class PciNicTest : public testing::Test {
 protected:
  PciNicTest() { fs::create_directories(device_); }

  void bind(const std::string& driver) {
    fs::create_directories(sysfs_ / "bus/pci/drivers" / driver);
    fs::create_symlink("../../drivers/" + driver, device_ / "driver");
  }
  void in_group(const std::string& group) {
    fs::create_symlink("../../../../kernel/iommu_groups/" + group, device_ / "iommu_group");
  }
  [[nodiscard]] PciNic nic() const { return look_up_pci_nic(kAddress, sysfs_); }
  [[nodiscard]] std::string obstacle(const PciRights& rights = kAll) const {
    return obstacle_of(nic(), rights, kPinned);
  }

  test::TemporaryDirectory directory_;
  fs::path sysfs_{directory_.path()};
  fs::path device_ = sysfs_ / "bus/pci/devices" / kAddress;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PciNicTest, WhereThereIsNone) {
  fs::remove(device_);
  EXPECT_TRUE(has(obstacle(), "there is no PCI device 0000:3b:00.0")) << obstacle();
}

TEST_F(PciNicTest, WithoutADriverTheRemedyIsACommand) {
  EXPECT_TRUE(has(obstacle(), "dpdk-devbind.py --bind=vfio-pci 0000:3b:00.0")) << obstacle();
}

TEST_F(PciNicTest, AKernelDriverIsNamedWithItsInterface) {
  bind("e1000e");
  EXPECT_TRUE(has(obstacle(), "the kernel driver e1000e holds 0000:3b:00.0;")) << obstacle();
  fs::create_directories(device_ / "net/eth7");
  EXPECT_EQ(nic().interface, "eth7");
  EXPECT_TRUE(has(obstacle(), "use iface:eth7")) << obstacle();
  EXPECT_TRUE(has(obstacle(), "ip link set eth7 down")) << obstacle();
}

TEST_F(PciNicTest, AnInterfaceOfVirtioIsOneDirectoryDeeper) {
  bind("virtio-pci");
  fs::create_directories(device_ / "virtio0/net/enp0s3");
  EXPECT_EQ(nic().interface, "enp0s3");
}

TEST_F(PciNicTest, ADriverThatSharesItsNicIsNoObstacle) {
  bind("mlx5_core");
  fs::create_directories(device_ / "net/eth7");
  EXPECT_EQ(obstacle(), "");
}

TEST_F(PciNicTest, UnderUioItTakesHugepages) {
  bind("uio_pci_generic");
  EXPECT_TRUE(nic().by_uio());
  EXPECT_EQ(obstacle(), "");
  PciRights rights = kAll;
  rights.hugepages = false;
  EXPECT_TRUE(has(obstacle(rights), "hugepages")) << obstacle(rights);
  EXPECT_TRUE(has(obstacle(rights), "vm.nr_hugepages")) << obstacle(rights);
}

TEST_F(PciNicTest, TheFirstRegistersAreFoundWhereverTheyAre) {
  EXPECT_EQ(nic().memory, "");
  std::ofstream(device_ / "resource");
  std::ofstream(device_ / "resource4");
  std::ofstream(device_ / "resource1");
  EXPECT_EQ(nic().memory, device_ / "resource1");
}

TEST_F(PciNicTest, UnderVfioItTakesAnIommu) {
  bind("vfio-pci");
  EXPECT_TRUE(has(obstacle(), "IOMMU")) << obstacle();
  in_group("12");
  EXPECT_EQ(nic().group, "12");
  EXPECT_EQ(obstacle(), "");
}

TEST_F(PciNicTest, WhoMayNotOpenTheGroupIsToldItsFile) {
  bind("vfio-pci");
  in_group("12");
  PciRights rights = kAll;
  rights.opens_group = false;
  EXPECT_TRUE(has(obstacle(rights), "chown USER /dev/vfio/12")) << obstacle(rights);
}

TEST_F(PciNicTest, ALimitOfPinnedMemoryIsNamedWithTheNeed) {
  bind("vfio-pci");
  in_group("12");
  PciRights rights = kAll;
  rights.hugepages = rights.locks_without_limit = false;
  rights.memlock = std::uint64_t{8} << 20;
  EXPECT_TRUE(has(obstacle(rights), "RLIMIT_MEMLOCK is 8192 KiB")) << obstacle(rights);
  EXPECT_TRUE(has(obstacle(rights), "64 MiB")) << obstacle(rights);
  rights.memlock = kPinned;
  EXPECT_EQ(obstacle(rights), "");
}

}  // namespace
}  // namespace stp::port
