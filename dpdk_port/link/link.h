// SPDX-License-Identifier: BSD-3-Clause
// One string names a link, the same in STP_LINK, for stpd and in a DAT configuration:
//   stpd:/run/stpd/stpd.sock          through a daemon, by its socket; stpd:NAME: by the name of
//   its
//                                     link; without a name: the default socket
//   iface:eth0                        any Linux interface
//   pci:0000:3b:00.0                  a NIC bound to DPDK
//   memif:/run/a.sock,role=server     shared memory to one other process
//   vdev:net_ring0                    any DPDK virtual device
//   udp:10.0.0.5                      a UDP socket: any IP network, no privileges; also
//                                     udp:[2001:db8::5], udp:eth0, udp: for all addresses
//   ip:10.0.0.5                       a raw socket of IP protocol 118, written as udp: is; ip: is
//                                     for all IPv4 addresses
//   loop                              this process alone
// Options follow after commas. For every link but stpd: (its daemon has its own) and udp: (which
// has mtu, copy and queues, and its own; ip: has mtu and copy):
//   mac=02:00:00:00:00:01   our address; iface: and pci: have one of their own
//   address=10.9.0.1/24     our IPv4 address, answered to ARP; iface: has the interface's
//   arp=10.9.0.2@02:00:00:00:00:02+...   known stations, never asked for by ARP
//   mtu=9000                longest payload of a frame; iface: has the interface's. udp: longest IP
//                           packet, as of ip:
//   vlan=7                  tag of its frames; others are dropped
//   copy=0|1                1: never attach user memory to frames
// For every link but stpd: and vdev: (whose driver has options of its own):
//   queues=1..16|auto       shards: the number of Nodes behind one address, each with its thread;
//                           auto: one for each CPU that the program may use
// For one kind:
//   iface:  driver=af_packet|af_xdp
//           qdisc=0|1 (1: what is sent passes tc, and tcpdump sees it)
//   memif:  role=server|client  id=0..  rsize=1..14 (log2 of the ring)  bsize=256..65535 (bytes)
//   udp:    port=0..65535  the UDP port (8181; 0: a free one)
//           congestion=auto|on|off  what peers may send yields to others who use the way: of
//                          peers behind a router or a tunnel of IP packets (auto), of all, of
//                          none; behind one of Ethernet frames (VXLAN, tap): on
//   ip:     congestion=
//   vdev:   shards=  is its queues=; all others belong to the device string and go to the driver
// Any other option is an error.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk_port/link/address.h"
#include "stp/types.h"

namespace stp::port {

enum class LinkKind { kStpd, kIface, kPci, kMemif, kVdev, kUdp, kIp, kLoop };

// Stations have IP addresses in the place of MAC addresses.
constexpr bool is_internet(LinkKind kind) {
  return kind == LinkKind::kUdp || kind == LinkKind::kIp;
}

// Stations by IPv4 address.
using Stations = std::map<Ipv4, MacAddr>;

enum class IfaceDriver : std::uint8_t { kAfPacket, kAfXdp };
enum class MemifRole : std::uint8_t { kServer, kClient };
// Where what peers may send yields to others: on no way, on those that lead through a router or a
// tunnel of IP packets, on all.
enum class Congestion : std::uint8_t { kOff, kAuto, kOn };

inline constexpr unsigned kMaxQueues = 16, kAutoQueues = 0;

// The smallest MTU fits 256-byte STUs; the largest, 65536-byte STUs.
inline constexpr unsigned kMinMtu = 360, kMaxMtu = 65'640;
// That of a udp: link is the length of IP packets: with 28 bytes of headers, or 48 over IPv6.
inline constexpr unsigned kMinUdpMtu = kMinMtu + 28, kMinUdpMtuOverIpv6 = kMinMtu + 48;
// The same of an ip: link.
inline constexpr unsigned kMinIpMtu = kMinMtu + 20, kMinIpMtuOverIpv6 = kMinMtu + 40;

// The options: one table, from which come the members of LinkConfig and what reads a link string.
// X(whether links of that `kind` have it, its name, type, value if it is not given, the value of
// `text` or nullopt, what is right). The kind and target of `link` are known. queues= of a vdev: is
// called shards=, because the driver may have an option of that name.
// clang-format off
#define STP_LINK_OPTIONS(X)                                                                        \
  X(!is_internet(kind), mac, std::optional<MacAddr>, {}, parse_station(text),                      \
    "a station's address such as 02:00:00:00:00:01")                                               \
  X(!is_internet(kind), address, std::optional<Ipv4>, {}, parse_own_address(text),                 \
    "IPv4/prefix such as 10.9.0.1/24")                                                             \
  X(!is_internet(kind), arp, Stations, {}, parse_stations(text),                                   \
    "IPv4@MAC such as 10.9.0.2@02:00:00:00:00:02, each address once, + between them")              \
  X(true, mtu, std::optional<unsigned>, {}, parse_number(text, least_mtu(link), kMaxMtu),          \
    mtus_of(kind))                                                                                 \
  X(!is_internet(kind), vlan, std::optional<std::uint16_t>, {},                                    \
    parse_number<std::uint16_t>(text, 1, 4094), "a number from 1 to 4094")                         \
  X(true, copy, bool, false, one_of<bool>(text, {{"0", false}, {"1", true}}), "0 or 1")            \
  X(kind != LinkKind::kIp, queues, unsigned, 1,                                                    \
    text == "auto" ? kAutoQueues : parse_number(text, 1, kMaxQueues),                              \
    "a number from 1 to 16, or auto")                                                              \
  X(kind == LinkKind::kIface, driver, std::optional<IfaceDriver>, {},                              \
    one_of<IfaceDriver>(text, {{"af_packet", IfaceDriver::kAfPacket}, {"af_xdp", IfaceDriver::kAfXdp}}), \
    "af_packet or af_xdp")                                                                         \
  X(kind == LinkKind::kIface, qdisc, std::optional<bool>, {},                                      \
    one_of<bool>(text, {{"0", false}, {"1", true}}), "0 or 1")                                     \
  X(kind == LinkKind::kMemif, role, std::optional<MemifRole>, {},                                  \
    one_of<MemifRole>(text, {{"server", MemifRole::kServer}, {"client", MemifRole::kClient}}),     \
    "server or client")                                                                            \
  X(kind == LinkKind::kMemif, id, std::optional<unsigned>, {},                                     \
    parse_number(text, 0, 0x7fff'ffff), "a number")                                                \
  X(kind == LinkKind::kMemif, rsize, std::optional<unsigned>, {}, parse_number(text, 1, 14),       \
    "a number from 1 to 14, log2 of the ring's length")                                            \
  X(kind == LinkKind::kMemif, bsize, std::optional<unsigned>, {}, parse_number(text, 256, 65'535), \
    "a number of bytes from 256 to 65535")                                                         \
  X(kind == LinkKind::kUdp, port, std::optional<unsigned>, {}, parse_number(text, 0, 65'535),      \
    "a UDP port, or 0 for one that is free")                                                       \
  X(is_internet(kind), congestion, std::optional<Congestion>, {},                                  \
    one_of<Congestion>(text, {{"auto", Congestion::kAuto}, {"on", Congestion::kOn}, {"off", Congestion::kOff}}), \
    "auto, on or off")
// clang-format on

struct LinkConfig {
  LinkKind kind = LinkKind::kLoop;
  std::string text;    // as written
  std::string target;  // socket path, interface, PCI address or device string
// `arp`: static entries. `copy`: never attach user memory to frames. `queues`: shards; kAutoQueues:
// one per CPU.
#define STP_MEMBER(of_kind, name, type, usual, value, right) type name = usual;
  STP_LINK_OPTIONS(STP_MEMBER)
#undef STP_MEMBER
};

// Why a link does not open, and the remedy.
struct OpenError {
  std::string text;
  bool is_taken = false;  // another program has the UDP port
};

// False: `error` names the fault and what would be right.
bool parse_link(const std::string& text, LinkConfig& out, std::string& error);

// The state of a link: the worst condition that is known.

// The numbers appear in stpd's pages and in programs (stm_link_state in <stp/managed.h>): never
// change the meaning of one.
enum class LinkState : std::uint8_t {
  kUnknown = 0,    // not reported
  kUp = 1,         // frames go both ways
  kDown = 2,       // the interface is switched off
  kNoCarrier = 3,  // no device answers at the other end of the cable
  kGone = 4,       // the interface, or the NIC, is not there
  kNoPeer = 5,     // memif: nobody has opened the other side
  kTaken = 6,      // the interface is back, but another program owns it
  kMtu = 7,        // the longest frames do not pass
  kMac = 8,        // frames pass, but the interface's MAC address is not the one peers know
  kDuplicate = 9,  // frames pass, but another station has the link's IPv4 or MAC address
};

struct LinkStateName {
  LinkState state;
  std::string_view name;
};
inline constexpr std::array kLinkStates{
    LinkStateName{LinkState::kUnknown, "unknown"},
    LinkStateName{LinkState::kUp, "up"},
    LinkStateName{LinkState::kDown, "down"},
    LinkStateName{LinkState::kNoCarrier, "no carrier"},
    LinkStateName{LinkState::kGone, "gone"},
    LinkStateName{LinkState::kNoPeer, "no peer"},
    LinkStateName{LinkState::kTaken, "taken"},
    LinkStateName{LinkState::kMtu, "mtu mismatch"},
    LinkStateName{LinkState::kMac, "mac changed"},
    LinkStateName{LinkState::kDuplicate, "duplicate address"},
};

constexpr std::string_view name_of(LinkState state) {
  for (const LinkStateName& each : kLinkStates) {
    if (each.state == state) return each.name;
  }
  return kLinkStates.front().name;
}

// Whether at least short frames pass.
constexpr bool carries_frames(LinkState state) {
  return state == LinkState::kUp || state == LinkState::kMtu || state == LinkState::kMac ||
         state == LinkState::kDuplicate;
}

}  // namespace stp::port
