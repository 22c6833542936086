// SPDX-License-Identifier: BSD-3-Clause
// The raw sockets of IP protocol 118 on this host, or in this network namespace. The kernel gives
// each of them a copy of every datagram, so two links at one address would answer for each other.
#pragma once

#include <cstdint>
#include <istream>

#include "dpdk_port/link/internet_address.h"

namespace stp::port {

// "STP" in IANA's registry.
// protocol: 13.15
inline constexpr int kStpProtocol = 118;

// How many there are that get datagrams for the address, which may be that of all, or 0 if the
// kernel does not tell (/proc).
unsigned raw_sockets_at(const InternetAddress& address);
// The same, from what the kernel tells in /proc/net/raw, or raw6.
unsigned raw_sockets_at(const InternetAddress& address, std::istream& list);

}  // namespace stp::port
