// SPDX-License-Identifier: BSD-3-Clause
// Which senders count as one host.
#pragma once

#include <string>

namespace stp::files {

// `station`: the address of a peer (stm_peer_info). On a link over UDP a host can have as many UDP
// ports as it likes, and as many IPv6 addresses as its network has: all of an IPv4 address are one
// host, and all of the first 64 bits of an IPv6 address, except for link-local ones, which all
// begin alike.
std::string host_in(const std::string& station);

}  // namespace stp::files
