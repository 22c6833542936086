// SPDX-License-Identifier: BSD-3-Clause
// Parses "host:port" and resolves hosts (libst document, 5.1 and 7.3). Functions return 0 or a
// negative errno, with a text for st_strerror.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libst/client/backend.h"

namespace stp::client {

// A host as written: "" (this host), a name, an IPv4 address, or a MAC or IPv6 address in brackets;
// /PORT after it is its UDP port.
struct Host {
  std::string name;            // without brackets, zone and UDP port
  std::string zone;            // the interface of a link-local address, at the link's host
  std::uint16_t udp_port = 0;  // 0: the usual one
  MacAddr mac;                 // valid if has_mac
  bool has_mac = false;
};

struct Name {
  Host host;
  std::uint32_t uport = 0;
};

// The largest port that the protocol has.
inline constexpr std::uint32_t kLastUport = 0xffff'ffff;

// -EINVAL: not a valid name.
int parse_host(const std::string& text, Host& out);
int parse_name(const std::string& text, Name& out);

// Resolves `host` to a MAC address on the link of `backend`, if necessary by its IP address and
// ARP. On a link over UDP, that is the name that the link has for the address (-EHOSTUNREACH: it
// reaches no such address). This process looks names up; what an address or an interface means,
// also whether it is the link's own, whoever drives the link decides, where it runs. Looking up a
// name may block for as long as the system's resolver does. -EHOSTUNREACH: the name is unknown;
// -ETIMEDOUT: no station answers for the address within a second. While a memif has no peer, it
// waits for one, until `deadline` and for 10 s at most. -ECANCELED: `unwanted` has become true,
// which it asks every few milliseconds. Of several addresses of a name it takes the first that the
// resolver gives of a family that the link has. `addresses`: gets all of them, if it is a link over
// IP and the name was looked up.
int resolve(Backend& backend, const Host& host, MacAddr& out, Time deadline = kNever,
            const std::function<bool()>& unwanted = {},
            std::vector<std::string>* addresses = nullptr);

// `error`: nobody has answered at the address that resolve() has found. If the name has several,
// the text of the error tells which one that is, and the others. Returns `error`.
int fail_at_address(const Host& host, const std::vector<std::string>& addresses, int error);

// 0: the link of `backend` is at `host`. -EADDRNOTAVAIL, or as resolve().
int check_own(Backend& backend, const Host& host);

}  // namespace stp::client
