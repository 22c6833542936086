// SPDX-License-Identifier: BSD-3-Clause
// Lists what could be a link on this machine, from the file system only: opens no device and does
// not call DPDK.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

// Where to look. Tests use other directories.
struct InventoryRoots {
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

}  // namespace stp::port
