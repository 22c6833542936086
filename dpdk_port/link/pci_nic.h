// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of a PCI NIC, and why DPDK could not open it. DPDK itself says little: it
// passes over a device that no driver of its own holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stp::port {

struct PciNic {
  std::string address;
  bool exists = false;
  std::string driver;     // the kernel driver that holds it; "": none
  std::string interface;  // the kernel's name, where the driver has made one
  std::string group;      // of the IOMMU: the file of /dev/vfio; "": there is no IOMMU
  std::string memory;     // the path of its first registers, which only root may open

  [[nodiscard]] bool by_vfio() const { return driver.starts_with("vfio"); }
  [[nodiscard]] bool by_uio() const { return driver.find("uio") != std::string::npos; }
};

// `sysfs`: of a test.
PciNic look_up_pci_nic(const std::string& address, const std::filesystem::path& sysfs = "/sys");

// What this process has and may do.
struct PciRights {
  bool hugepages = false;            // enough of them are free, or DPDK has some already
  bool opens_group = false;          // may open the file of /dev/vfio
  bool locks_without_limit = false;  // CAP_IPC_LOCK
  std::uint64_t memlock = 0;         // bytes that it may pin otherwise
};

PciRights rights_on(const PciNic& nic, bool hugepages);

// What stands in the way of opening it, and the remedy; "": nothing that can be seen from here.
// `pinned`: bytes that VFIO is going to pin.
std::string obstacle_of(const PciNic& nic, const PciRights& rights, std::uint64_t pinned);

}  // namespace stp::port
