// SPDX-License-Identifier: BSD-3-Clause
// What is asked of a DPDK device, by what its driver says of it.
#pragma once

#include <cstdint>
#include <string>

#include "dpdk_port/link/device_spec.h"

namespace stp::port {

// Descriptors each way, where the device has room for them.
constexpr std::uint16_t kDescriptors = 512;
// Mbufs beside those in descriptors: bursts in hand, and what software devices hold in their rings.
constexpr unsigned kSpareMbufs = 1536;

struct DeviceFacts {
  std::string driver;
  std::size_t least_room = 0;  // the smallest receive buffer that it accepts, in bytes
  bool filters_vlans = false;  // it can be told which VLANs to let through
};

struct DevicePlan {
  std::size_t room = 0;    // bytes of a frame that fit one mbuf
  bool tell_vlan = false;  // turn its filter on and let the link's VLAN through
};

DevicePlan plan_device(const DeviceSpec& spec, const DeviceFacts& facts);

// The memory of DPDK, in MiB, of a process whose first link is that NIC, where there are no
// hugepages: VFIO pins all of it. Enough for four such links.
unsigned pinned_megabytes(const DeviceSpec& spec);

}  // namespace stp::port
