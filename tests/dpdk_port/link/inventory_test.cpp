// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/inventory.h"

#include <gtest/gtest.h>
#include <net/if_arp.h>

#include <algorithm>
#include <cerrno>

#include "dpdk_port/link/link.h"
#include "tests/temporary_directory.h"

namespace stp::port {
namespace {

// A private /sys, /proc and directory of sockets.
class InventoryTest : public ::testing::Test {
 protected:
  InventoryTest() {
    roots_.sys = root_.path() + "/sys";
    roots_.proc = root_.path() + "/proc";
    roots_.sockets = root_.path() + "/sockets";
    write("proc/self/status", "Name:\tx\nCapEff:\t0000000000002000\n");
    roots_.interfaces = [this] { return interfaces_; };
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& path, const std::string& target) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_symlink(target, root_ / path);
  }
  // What sysfs shows of an interface with that index.
  void show(const std::string& name, int index, const std::string& mac) {
    const auto at = "sys/class/net/" + name + "/";
    write(at + "ifindex", std::to_string(index) + "\n");
    write(at + "address", mac + "\n");
    write(at + "operstate", "dormant\n");
    write(at + "speed", "25000\n");
    link(at + "device/driver", "../../../bus/pci/drivers/ice");
  }
  KernelInterface& interface(const std::string& name, unsigned type = ARPHRD_ETHER) {
    const int index = static_cast<int>(interfaces_.size()) + 7;
    show(name, index, "02:00:00:00:00:0a");
    interfaces_.push_back({.name = name,
                           .index = index,
                           .flags = IFF_UP | IFF_RUNNING,
                           .type = type,
                           .mtu = 9'000,
                           .mac = parse_mac("02:00:00:00:00:0a").value()});
    return interfaces_.back();
  }
  void pci(const std::string& address, const std::string& driver,
           const std::string& pci_class = "0x020000") {
    const auto at = "sys/bus/pci/devices/" + address + "/";
    write(at + "class", pci_class + "\n");
    if (!driver.empty()) link(at + "driver", "../../drivers/" + driver);
  }
  Candidate find(const std::string& link) {
    const auto all = take_inventory(roots_).candidates;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Candidate& each) { return each.link == link; });
    if (found != all.end()) return *found;
    ADD_FAILURE() << "not listed: " << link;
    return {};
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  test::TemporaryDirectory root_;
  InventoryRoots roots_;
  std::vector<KernelInterface> interfaces_;
};

TEST_F(InventoryTest, a_machine_without_anything_has_udp_and_loop) {
  const auto all = take_inventory(roots_);
  ASSERT_EQ(all.candidates.size(), 2U);
  EXPECT_EQ(all.candidates[0].link, "udp:");
  EXPECT_TRUE(all.candidates[0].usable);
  EXPECT_EQ(all.candidates[1].link, "loop");
  EXPECT_TRUE(all.candidates[1].usable);
  EXPECT_TRUE(all.hugepages.empty());
}

TEST_F(InventoryTest, an_interface_is_described_as_the_kernel_knows_it) {
  interface("eth0");
  const auto found = find("iface:eth0");
  EXPECT_TRUE(found.usable) << found.note;
  EXPECT_EQ(found.note, "");
  EXPECT_EQ(found.driver, "ice");
  EXPECT_EQ(found.state, "dormant");
  EXPECT_EQ(found.mtu, 9000U);
  EXPECT_EQ(found.megabits, 25'000U);
}

// What is mounted at /sys may be that of another network namespace.
TEST_F(InventoryTest, interfaces_of_another_namespace_are_not_listed_nor_believed) {
  auto& ours = interface("eth0");
  ours.mac = parse_mac("02:00:00:00:00:0b").value();
  show("eth1", 8, "02:00:00:00:00:0c");
  EXPECT_EQ(take_inventory(roots_).candidates.size(), 3U) << "eth0, udp: and loop";
  const auto found = find("iface:eth0");
  EXPECT_TRUE(found.usable);
  EXPECT_EQ(found.mtu, 9000U);
  EXPECT_EQ(found.state, "up");
  EXPECT_EQ(found.driver, "");
  EXPECT_EQ(found.megabits, std::nullopt);
}

TEST_F(InventoryTest, what_keeps_an_interface_from_being_used_is_told_with_the_remedy) {
  interface("down0").flags = 0;
  interface("lo", ARPHRD_LOOPBACK);
  interface("ib0", ARPHRD_INFINIBAND);
  interface("short0").mtu = 300;
  write("sys/class/net/short0/speed", "-1\n");
  EXPECT_TRUE(has(find("iface:down0").note, "ip link set down0 up"));
  EXPECT_TRUE(has(find("iface:lo").note, "use loop"));
  EXPECT_TRUE(has(find("iface:ib0").note, "no Ethernet"));
  EXPECT_TRUE(has(find("iface:short0").note, "ip link set short0 mtu 1500"));
  EXPECT_EQ(find("iface:short0").megabits, std::nullopt);
  for (const auto* name : {"iface:down0", "iface:lo", "iface:ib0", "iface:short0"})
    EXPECT_FALSE(find(name).usable) << name;
}

TEST_F(InventoryTest, what_another_program_owns_cannot_be_used) {
  interface("eth0");
  interface("eth1");
  roots_.owner = [](int index, const MacAddr& mac) {
    return index == 7 && to_string(mac) == "02:00:00:00:00:0a" ? "stpd, pid 5" : "";
  };
  EXPECT_FALSE(find("iface:eth0").usable);
  EXPECT_TRUE(has(find("iface:eth0").note, "stpd, pid 5 owns it: reach its link"));
  EXPECT_TRUE(find("iface:eth1").usable);
}

TEST_F(InventoryTest, without_a_carrier_an_interface_can_be_used_but_that_is_said) {
  interface("eth0").flags = IFF_UP;
  EXPECT_TRUE(find("iface:eth0").usable);
  EXPECT_TRUE(has(find("iface:eth0").note, "no carrier"));
}

TEST_F(InventoryTest, without_the_capability_no_interface_can_be_used) {
  interface("eth0");
  write("proc/self/status", "CapEff:\t0000000000000000\n");
  EXPECT_FALSE(find("iface:eth0").usable);
  EXPECT_TRUE(has(find("iface:eth0").note, "CAP_NET_RAW"));
  std::filesystem::remove(root_ / "proc/self/status");
  EXPECT_FALSE(find("iface:eth0").usable);
}

TEST_F(InventoryTest, of_pci_devices_nics_alone_are_listed_with_who_has_them) {
  pci("0000:01:00.0", "vfio-pci");
  pci("0000:02:00.0", "ice");
  std::filesystem::create_directories(root_ / "sys/bus/pci/devices/0000:02:00.0/net/eth2");
  pci("0000:03:00.0", "virtio-pci");
  std::filesystem::create_directories(root_ / "sys/bus/pci/devices/0000:03:00.0/virtio4/net/eth3");
  pci("0000:04:00.0", "");
  pci("0000:05:00.0", "nvme", "0x010802");
  EXPECT_TRUE(find("pci:0000:01:00.0").usable);
  EXPECT_FALSE(find("pci:0000:02:00.0").usable);
  EXPECT_TRUE(has(find("pci:0000:02:00.0").note, "iface:eth2"));
  EXPECT_TRUE(has(find("pci:0000:03:00.0").note, "iface:eth3"));
  EXPECT_TRUE(has(find("pci:0000:04:00.0").note, "--bind=vfio-pci 0000:04:00.0"));
  EXPECT_EQ(take_inventory(roots_).candidates.size(), 6U);
}

TEST_F(InventoryTest, a_nic_on_uio_needs_a_free_hugepage) {
  pci("0000:01:00.0", "uio_pci_generic");
  write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
  write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
  EXPECT_FALSE(find("pci:0000:01:00.0").usable);
  EXPECT_TRUE(has(find("pci:0000:01:00.0").note, "hugepages"));
  write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n");
  EXPECT_TRUE(find("pci:0000:01:00.0").usable);
  const auto pages = take_inventory(roots_).hugepages;
  ASSERT_EQ(pages.size(), 1U);
  EXPECT_EQ(pages[0].kilobytes, 2048U);
  EXPECT_EQ(pages[0].total, 8U);
  EXPECT_EQ(pages[0].free, 3U);
}

TEST_F(InventoryTest, a_daemon_is_reached_or_it_is_said_why_not) {
  write("sockets/left.sock", "");
  write("sockets/live.sock", "");
  write("sockets/stpd.conf", "");
  roots_.reach = [](const std::string& path) { return has(path, "left") ? ECONNREFUSED : 0; };
  EXPECT_TRUE(find("stpd:" + roots_.sockets + "/live.sock").usable);
  const auto left = find("stpd:" + roots_.sockets + "/left.sock");
  EXPECT_FALSE(left.usable);
  EXPECT_TRUE(has(left.note, "start stpd again"));
  EXPECT_EQ(take_inventory(roots_).candidates.size(), 4U);
  roots_.reach = [](const std::string&) { return EACCES; };
  EXPECT_TRUE(has(find("stpd:" + roots_.sockets + "/live.sock").note, "group"));
}

TEST_F(InventoryTest, memif_sockets_that_somebody_serves_are_listed_once) {
  write("proc/net/unix",
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000000000000000: 00000002 00000000 00010000 0005 01 100 /run/memif.sock\n"
        "0000000000000000: 00000003 00000000 00000000 0005 03 101 /run/memif.sock\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 102 /run/other.sock\n"
        "0000000000000000: 00000002 00000000 00010000 0005 01 103 @memif-abstract\n"
        "garbage\n");
  EXPECT_TRUE(find("memif:/run/memif.sock,role=client").usable);
  EXPECT_EQ(take_inventory(roots_).candidates.size(), 3U);
}

TEST_F(InventoryTest, udp_is_not_usable_while_another_program_has_its_port) {
  constexpr char kHead[] =
      "   sl  local_address                         remote_address                        st\n";
  for (const std::string table : {"udp", "udp6"}) {
    const auto zeros = std::string(table == "udp" ? 8 : 32, '0');
    const auto write_port = [&](const std::string& port) {
      write("proc/self/net/" + table, kHead + ("  12: " + zeros) + ":" + port + " " + zeros +
                                          ":1FF5 07 00000000:00000000 00:00000000\n");
    };
    write_port("1FF6");
    EXPECT_TRUE(find("udp:").usable) << table;
    write_port("1FF5");
    EXPECT_FALSE(find("udp:").usable) << table;
    EXPECT_TRUE(has(find("udp:").note, "udp:,port=0"));
    write_port("1FF6");
  }
}

TEST_F(InventoryTest, each_link_that_is_listed_is_understood) {
  interface("eth0");
  pci("0000:01:00.0", "vfio-pci");
  write("sockets/live.sock", "");
  write("proc/net/unix", "0: 2 0 00010000 0005 01 100 /run/memif.sock\n");
  for (const auto& each : take_inventory(roots_).candidates) {
    LinkConfig config;
    std::string error;
    EXPECT_TRUE(parse_link(each.link, config, error)) << each.link << ": " << error;
  }
}

}  // namespace
}  // namespace stp::port
