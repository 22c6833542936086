// SPDX-License-Identifier: BSD-3-Clause
// "host:port" and what hosts resolve to (libst document, 5.1 and 7.3). Functions return 0 or a
// negative errno; st_strerror says more.
#pragma once

#include <string>

#include "libst/client/backend.h"

namespace stp::client {

// A host as written: "" (this host), a name, an IPv4 address, or a MAC address in brackets.
struct Host {
  std::string name;
  MacAddr mac;  // where it was given
  bool has_mac = false;
};

struct Name {
  Host host;
  std::uint32_t uport = 0;
};

// Ports of the host's services; and all that the protocol has.
inline constexpr std::uint32_t kLastPort = 0xffff, kLastUport = 0xffff'ffff;

// -EINVAL for what is no name.
int parse_host(const std::string& text, Host& out);
int parse_name(const std::string& text, Name& out, std::uint32_t last_port = kLastPort);

// The MAC address of `host` on the link of `backend`, by IPv4 address and ARP if need be:
// -EHOSTUNREACH if nothing is known by that name, -ETIMEDOUT if nobody answers for its address.
int resolve(Backend& backend, const Host& host, MacAddr& out);

}  // namespace stp::client
