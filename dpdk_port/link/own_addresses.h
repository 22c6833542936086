// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows of this host's addresses and of the interfaces that have them.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/internet_address.h"

namespace stp::port {

// Bytes of the longest packet; 0: there is no such interface.
unsigned mtu_of(const std::string& interface);

// The interface that has the address, whatever its port; "": none.
std::string interface_with(const InternetAddress& address);

// The interface that all hosts of its network are reached at by that IPv4 address; "": none.
std::string interface_with_broadcast(const InternetAddress& address);

// The first IPv4 address of an interface, or its first IPv6 one that is not link-local.
std::optional<InternetAddress> address_of(const std::string& interface);

// The address that packets to other networks come from. Without a way to them, that of any
// interface. nullopt: this host has none.
std::optional<InternetAddress> usual_address();

}  // namespace stp::port
