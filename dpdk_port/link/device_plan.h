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
};

struct DevicePlan {
  std::size_t room = 0;    // bytes of a frame that fit one mbuf
  bool tell_vlan = false;  // turn on its filter and admit the link's VLAN
};

DevicePlan plan_device(const DeviceSpec& spec, const DeviceFacts& facts);

// DPDK's memory, in MiB, for a process whose first link is that NIC, without hugepages: VFIO pins
// all of it. Enough for four such links.
unsigned pinned_megabytes(const DeviceSpec& spec);

}  // namespace stp::port
