// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/pci_nic.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace stp::port {
namespace {

namespace fs = std::filesystem;

// The name of a symbolic link's target; "": none.
std::string target_of(const fs::path& link) {
  std::error_code missing;
  return fs::read_symlink(link, missing).filename();
}

// The first entry whose name begins so; "": none.
std::string entry_of(const fs::path& directory, const std::string& prefix) {
  std::error_code missing;
  std::string first;
  for (const auto& entry : fs::directory_iterator(directory, missing)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix) && (first.empty() || name < first)) first = name;
  }
  return first;
}

// Some NICs have registers at the second place but not at the first.
std::string registers_of(const fs::path& device) {
  for (const char place : std::string("012345")) {
    const fs::path file = device / (std::string("resource") + place);
    std::error_code missing;
    if (fs::exists(file, missing)) return file;
  }
  return {};
}

// virtio has its own device in between.
std::string interface_of(const fs::path& device) {
  const std::string own = entry_of(device / "net", "");
  return own.empty() ? entry_of(device / entry_of(device, "virtio") / "net", "") : own;
}

bool has_capability(unsigned capability) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t set = 0;
    if (fields >> name >> std::hex >> set && name == "CapEff:") return (set >> capability & 1) != 0;
  }
  return false;
}

// Drivers that share the NIC with DPDK.
bool is_shared(const std::string& driver) {
  return driver == "mlx4_core" || driver == "mlx5_core";
}

std::string bind(const PciNic& nic) {
  return "dpdk-devbind.py --bind=vfio-pci " + nic.address;
}

std::string obstacle_of_vfio(const PciNic& nic, const PciRights& rights, std::uint64_t pinned) {
  if (nic.group.empty()) {
    return nic.driver + " holds " + nic.address +
           ", but it has no IOMMU group: turn the IOMMU on (kernel parameter intel_iommu=on, or "
           "the "
           "firmware's settings)";
  }
  const std::string file = "/dev/vfio/" + nic.group;
  if (!rights.opens_group) {
    return "this user may not open " + file + " of " + nic.address +
           ": give it to the user (chown USER " + file + "), or run as root";
  }
  if (rights.locks_without_limit || rights.memlock >= pinned) return {};
  const std::string need = std::to_string(pinned >> 20) + " MiB";
  return "RLIMIT_MEMLOCK is " + std::to_string(rights.memlock >> 10) +
         " KiB, and VFIO pins the memory of frames, " + need +
         ": LimitMEMLOCK= of the unit, ulimit -l, or CAP_IPC_LOCK";
}

}  // namespace

PciNic look_up_pci_nic(const std::string& address, const fs::path& sysfs) {
  PciNic nic;
  const fs::path device = sysfs / "bus/pci/devices" / address;
  std::error_code missing;
  nic.address = address;
  nic.exists = fs::exists(device, missing);
  nic.driver = target_of(device / "driver");
  nic.interface = interface_of(device);
  nic.group = target_of(device / "iommu_group");
  nic.memory = registers_of(device);
  return nic;
}

PciRights rights_on(const PciNic& nic, bool hugepages) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const auto opens = [](const std::string& file) {
    return ::access(file.c_str(), R_OK | W_OK) == 0;
  };
  return {.hugepages = hugepages,
          // Without an IOMMU it has another name.
          .opens_group = opens("/dev/vfio/" + nic.group) || opens("/dev/vfio/noiommu-" + nic.group),
          .locks_without_limit = has_capability(CAP_IPC_LOCK),
          .memlock = limit.rlim_cur};
}

std::string obstacle_of(const PciNic& nic, const PciRights& rights, std::uint64_t pinned) {
  if (!nic.exists) {
    return "there is no PCI device " + nic.address + ": dpdk-devbind.py --status lists the NICs";
  }
  if (nic.driver.empty()) return "no driver holds " + nic.address + ": " + bind(nic);
  if (nic.by_vfio()) return obstacle_of_vfio(nic, rights, pinned);
  if (nic.by_uio()) {
    if (rights.hugepages) return {};
    return nic.driver + " holds " + nic.address +
           ", and under uio a NIC reaches hugepages only; 128 MiB of them must be free: sysctl "
           "vm.nr_hugepages=256, or with an IOMMU " +
           bind(nic);
  }
  if (is_shared(nic.driver)) return {};
  std::string said = "the kernel driver " + nic.driver + " holds " + nic.address;
  if (nic.interface.empty()) return said + "; to take it away: " + bind(nic);
  return said + " as interface " + nic.interface + ": use iface:" + nic.interface +
         ", or take it away: ip link set " + nic.interface + " down; " + bind(nic);
}

}  // namespace stp::port
