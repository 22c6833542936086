// SPDX-License-Identifier: BSD-3-Clause
// What the file system tells of this machine's links: what could be one, and why DPDK could not
// open a PCI NIC. Opens no device and does not call DPDK.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/link/interfaces.h"
#include "stp/types.h"

namespace stp::port {

enum class CandidateKind { kDaemon, kInterface, kPci, kMemif, kUdp, kLoop };

struct Candidate {
  CandidateKind kind = CandidateKind::kLoop;
  std::string link;    // the link string, for STP_LINK and --link
  std::string name;    // socket, interface or PCI address
  std::string driver;  // of the kernel or of DPDK; "": none, or it is not known
  std::string state;   // of an interface as the kernel says it: "up", "down", "unknown", ...
  std::optional<unsigned> mtu;
  std::optional<unsigned> megabits;  // per second
  bool usable = false;
  std::string note;  // not usable: why, and what to do; else what one should know, or ""
};

struct Hugepages {
  std::uint64_t kilobytes = 0;  // of one page
  std::uint64_t total = 0, free = 0;
};

struct Inventory {
  std::vector<Candidate> candidates;  // daemons, interfaces, PCI NICs, memif sockets, udp:, loop
  std::vector<Hugepages> hugepages;
};

// Where to look. Tests use other directories, and interfaces.
struct InventoryRoots {
  std::function<std::vector<KernelInterface>()> interfaces = ask_for_interfaces;
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string sockets = "/run/stpd";  // of daemons
  // Tries to reach the daemon behind a socket. Returns 0 or an errno.
  std::function<int(const std::string& socket)> reach;
  // Who owns that address on the interface with that index; "": nobody.
  std::function<std::string(int index, const MacAddr& mac)> owner;
};

Inventory take_inventory(const InventoryRoots& roots);

// "daemon", "interface", ...
const char* name_of(CandidateKind kind);

// Facts of the kernel about a PCI NIC, and the reason why DPDK could not open it. DPDK gives little
// reason: it skips a device that is not bound to one of its drivers.
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
