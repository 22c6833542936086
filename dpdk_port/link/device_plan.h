// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a DPDK device, derived from what its driver reports.
#pragma once

#include <cstdint>
#include <string>

#include "dpdk_port/link/device_spec.h"

namespace stp::port {

// Descriptors each way, if the device has room for them.
constexpr std::uint16_t kDescriptors = 512;
// Mbufs beyond those in descriptors: for bursts in progress and for the rings of software devices.
constexpr unsigned kSpareMbufs = 1536;

struct DeviceFacts {
  std::string driver;
  std::size_t least_room = 0;  // the smallest receive buffer it accepts, in bytes
  bool filters_vlans = false;  // it can filter by VLAN
  unsigned most_receive_queues = 1, most_send_queues = 1;
};

// What decides which queue of a device an arriving frame is in, where it has several.
enum class Steering {
  kNothing,  // nothing that we know of
  kPeer,     // the peer's choice of its queue
  kRules,    // rules on the D_Port, if the device takes them
};

struct DevicePlan {
  std::size_t room = 0;    // bytes of a frame that fit one mbuf
  bool tell_vlan = false;  // turn on its filter and admit the link's VLAN
  unsigned receive_queues = 1, send_queues = 1;
  Steering steering = Steering::kNothing;
};

DevicePlan plan_device(const DeviceSpec& spec, const DeviceFacts& facts);

// DPDK's memory, in MiB, for a process whose first link is that NIC, without hugepages: VFIO pins
// all of it. Enough for four such links.
unsigned pinned_megabytes(const DeviceSpec& spec);

}  // namespace stp::port
