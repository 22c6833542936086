// SPDX-License-Identifier: BSD-3-Clause
// Facts of the kernel about a PCI NIC, and the reason why DPDK could not open it. DPDK gives little
// reason: it skips a device that is not bound to one of its drivers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stp::port {

struct PciNic {
  std::string address;
  bool exists = false;
  std::string driver;     // the kernel driver that holds it; "": none
  std::string interface;  // the kernel's interface name, if the driver made one
  std::string group;      // of the IOMMU: the file of /dev/vfio; "": there is no IOMMU
  std::string memory;     // path of its first registers; only root may open it

  [[nodiscard]] bool by_vfio() const { return driver.starts_with("vfio"); }
  [[nodiscard]] bool by_uio() const { return driver.find("uio") != std::string::npos; }
};

// `sysfs`: tests pass their own.
PciNic look_up_pci_nic(const std::string& address, const std::filesystem::path& sysfs = "/sys");

// The resources and privileges of this process.
struct PciRights {
  bool hugepages = false;            // enough are free, or DPDK has some already
  bool opens_group = false;          // may open the file of /dev/vfio
  bool locks_without_limit = false;  // CAP_IPC_LOCK
  std::uint64_t memlock = 0;         // bytes it may pin without CAP_IPC_LOCK
};

PciRights rights_on(const PciNic& nic, bool hugepages);

// The reason why it cannot be opened, and the remedy; "": none visible from here. `pinned`: bytes
// that VFIO will pin.
std::string obstacle_of(const PciNic& nic, const PciRights& rights, std::uint64_t pinned);

}  // namespace stp::port
