// SPDX-License-Identifier: BSD-3-Clause
// A link in DPDK's terms: the device to make, the size of its frames, its address.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/link.h"

namespace stp::port {

struct DeviceSpec {
  std::string bus;             // "vdev" or "pci"
  std::string name;            // of the device, and of its ethdev
  std::string arguments;       // of the driver
  std::string interface;       // iface: the kernel's name
  bool packet_socket = false;  // uses a PacketSocket: no ethdev is made
  bool qdisc = false;          // likewise: what it sends passes the interface's queueing discipline

  struct Memif {
    std::string socket;         // its file
    bool makes_socket = false;  // false: the other side makes it
    std::uint32_t id = 0;
    unsigned log2_ring = 0;
    std::uint32_t buffer = 0;  // bytes
  };
  std::optional<Memif> memif;  // no ethdev is made

  unsigned shards = 1;  // that use the device
  unsigned mtu = 0;
  std::size_t data_room = 0;  // of an mbuf: room for a whole frame, and the driver's minimum
  bool sets_mtu = false;      // tell the driver the MTU
  std::optional<std::uint16_t> vlan;  // the tag of frames
  std::optional<MacAddr> mac;         // the MAC address to use; nullopt: the device's own
  bool sets_mac = false;              // set it on the device; else receive frames for it as well
  std::optional<Ipv4> address;
  bool answers_arp = false;
};

// False: `error` names the fault and the remedy. `serial` makes device names unique. Of one shard.
bool make_device_spec(const LinkConfig& link, unsigned serial, DeviceSpec& out, std::string& error);

}  // namespace stp::port
