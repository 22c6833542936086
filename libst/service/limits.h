// SPDX-License-Identifier: BSD-3-Clause
// Default limits of one client, all its endpoints together, so that no client uses up the service.
// A request beyond a limit fails with -EDQUOT.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp::service::limits {

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

}  // namespace stp::service::limits
