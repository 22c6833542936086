// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows of a network interface.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/link.h"

namespace stp::port {

struct InterfaceFacts {
  MacAddr mac;
  unsigned mtu = 0;
  std::optional<Ipv4> address;  // its first IPv4 address
};

// False: `error` says what is wrong with the interface (missing, down, not Ethernet) or that this
// user may not open raw sockets, and the remedy.
bool look_up_interface(const std::string& name, InterfaceFacts& out, std::string& error);

}  // namespace stp::port
