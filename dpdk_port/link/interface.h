// SPDX-License-Identifier: BSD-3-Clause
// Facts of the kernel about a network interface.
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

// The first IPv4 address of an interface, also one with a label. `name`: for systems without
// rtnetlink.
std::optional<Ipv4> first_address(const std::string& name, int index);

// False: `error` names the fault and the remedy: the interface is missing, down or not Ethernet, or
// this user may not open raw sockets.
bool look_up_interface(const std::string& name, InterfaceFacts& out, std::string& error);

}  // namespace stp::port
