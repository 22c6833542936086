// SPDX-License-Identifier: BSD-3-Clause
// Parses "host:port" and resolves hosts (libst document, 5.1 and 7.3). Functions return 0 or a
// negative errno, with a text for st_strerror.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dpdk_port/link/address.h"
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

// An address of a host. `zone` is the name of an interface of the host that drives the link.
struct Place {
  port::InternetAddress address;
  std::string zone;
  bool operator==(const Place&) const = default;
};

// As it stands before a port: 10.0.0.5, [2001:db8::5], [fe80::1%eth0].
std::string name_of(const Place& place);

// Where a host may be.
struct Places {
  static constexpr std::size_t kMost = 8;
  std::string host;
  MacAddr station;         // valid if `all` is empty: no address is needed to know it
  std::vector<Place> all;  // the first ones, in the resolver's order, each once
};

// Looks the host up. This process looks names up; what an address or an interface means, also
// whether it is the link's own, whoever drives the link decides, where it runs. Looking up a name
// may block for as long as the system's resolver does. -EHOSTUNREACH: the name is unknown, or has
// no address that the link could reach.
int find_places(Backend& backend, const Host& host, Places& out);

// The station there, by ARP if necessary. On a link over UDP, that is the name that the link has
// for the address (-EHOSTUNREACH: it reaches no such address). -EAGAIN: not known yet; ask again.
int ask_station(Backend& backend, const Place& place, MacAddr& out);
// Asks until it is known, at least once. -ETIMEDOUT: no station answers for the address within a
// second, or until `limit`. While a memif has no peer, it waits for one, until `deadline` and for
// 10 s at most. -ECANCELED: `unwanted` has become true, which it asks every few milliseconds.
struct Patience {
  Time deadline = kNever, limit = kNever;
};
int await_station(Backend& backend, const Place& place, const Patience& patience,
                  const std::function<bool()>& unwanted, MacAddr& out);

// While a memif has no peer, waits for one as above, if the host has several addresses: then their
// time begins afterwards.
void await_peer(Backend& backend, const Places& places, Time deadline,
                const std::function<bool()>& unwanted);

// All of that: the station of the host's first address that has one. Several have a second
// together.
int resolve(Backend& backend, const Host& host, MacAddr& out);

// 0: the link of `backend` is at `host`. -EADDRNOTAVAIL, or as resolve().
int check_own(Backend& backend, const Host& host);

}  // namespace stp::client
