// SPDX-License-Identifier: BSD-3-Clause
// Limits of programs, so that none uses up the service: the defaults, and those that an operator
// can choose (Quotas). A request beyond a limit fails with -EDQUOT.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libst/service/budget.h"

namespace stp::service {

namespace limits {

// One client, all its endpoints together.
inline constexpr std::size_t kEndpoints = 1'024;
inline constexpr std::size_t kRegions = 65'536;
// Mx are 16-bit names, shared by all clients of a link.
inline constexpr std::size_t kMxs = 8'192;
// Channels of connections, and spare channels for connections to come.
inline constexpr std::uint32_t kChannels = 4'096;
inline constexpr std::uint64_t kChannelBytes = std::uint64_t{256} << 20;
// Slots of all channels together.
inline constexpr std::uint64_t kSlots = std::uint64_t{1} << 21;
// Bytes of the client's memory that the service maps. Memory of the service's own process costs the
// service nothing and is not counted.
inline constexpr std::uint64_t kMappedBytes = std::uint64_t{16} << 30;
// Limit for one request.
inline constexpr std::uint64_t kMapRequestBytes = std::uint64_t{4} << 30;
// Larger than any region, but small enough that sums of lengths do not overflow 64 bits.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
// Memory of the tables that map a client's Bufx to memory.
inline constexpr std::uint64_t kTableBytes = std::uint64_t{128} << 20;

// Limits for all clients of a link together. Ports and Mx are 16-bit names.
inline constexpr std::uint64_t kTotalEndpoints = 65'536;
inline constexpr std::uint64_t kTotalRegions = 262'144;
inline constexpr std::uint64_t kTotalPorts = 65'535;
inline constexpr std::uint64_t kTotalMxs = 65'535;
// Defaults of totals: the machine's memory divided by these numbers.
inline constexpr std::uint64_t kQueuePart = 4, kMappedPart = 1, kTablePart = 16, kWindowPart = 16;

// Spare channels per listening endpoint, for connections that nobody has accepted yet. Fewer if the
// channels are so large that they would take more than kStockBytes.
inline constexpr std::uint32_t kBacklog = 16;
inline constexpr std::size_t kStockBytes = std::size_t{4} << 20;

// Clients of one daemon.
inline constexpr std::size_t kClients = 256;
// Additional places, reserved for administrators to watch from.
inline constexpr std::size_t kOperatorPlaces = 8;

}  // namespace limits

// For one client, all its endpoints together, and for all clients of a link.
struct Quotas {
  std::size_t clients = limits::kClients;  // of one link
  std::size_t endpoints = limits::kEndpoints;
  std::size_t regions = limits::kRegions;
  std::size_t mxs = limits::kMxs;
  std::uint32_t connections = limits::kChannels;
  std::uint64_t slots = limits::kSlots;
  std::uint64_t queue_bytes = limits::kChannelBytes;
  std::uint64_t mapped_bytes = limits::kMappedBytes;
  std::uint64_t map_bytes = limits::kMapRequestBytes;  // in one kMap request
  // For all clients together, and the share that one user may have (budget.h).
  unsigned user_share = kUserShare;
  std::uint64_t total_endpoints = limits::kTotalEndpoints;
  std::uint64_t total_regions = limits::kTotalRegions;
  // 0: a fraction of the machine's memory.
  std::uint64_t total_queue_bytes = 0, total_mapped_bytes = 0, total_table_bytes = 0;
  std::uint64_t total_window_bytes = 0;
};

}  // namespace stp::service
