// SPDX-License-Identifier: BSD-3-Clause
// What one client may have, all its endpoints together, so that none can use up the service.
// Beyond a limit a request gets -EDQUOT.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp::service::limits {

inline constexpr std::size_t kEndpoints = 1'024;
inline constexpr std::size_t kRegions = 65'536;
// Mx are named by 16 bits for all clients of a link together.
inline constexpr std::size_t kMxs = 8'192;
// Channels of connections, and those in stock for connections to come.
inline constexpr std::uint32_t kChannels = 4'096;
inline constexpr std::uint64_t kChannelBytes = std::uint64_t{256} << 20;
// Slots of all of them together.
inline constexpr std::uint64_t kSlots = std::uint64_t{1} << 21;
// Bytes of the client's memory that this process maps. Its own memory, as inside one process,
// costs the service nothing and is not counted.
inline constexpr std::uint64_t kMappedBytes = std::uint64_t{16} << 30;
// At most this much in one request.
inline constexpr std::uint64_t kMapRequestBytes = std::uint64_t{4} << 30;
// Nobody has a region as large; sums of lengths stay far from 2^64.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
// Memory of the tables that say what is bound to its Bufx.
inline constexpr std::uint64_t kTableBytes = std::uint64_t{128} << 20;

// Of all clients of a link together. Ports and Mx are names of 16 bits.
inline constexpr std::uint64_t kTotalEndpoints = 65'536;
inline constexpr std::uint64_t kTotalRegions = 262'144;
inline constexpr std::uint64_t kTotalPorts = 65'535;
inline constexpr std::uint64_t kTotalMxs = 65'535;
// Where nothing was chosen: one part of the machine's memory in so many.
inline constexpr std::uint64_t kQueuePart = 4, kMappedPart = 1, kTablePart = 16, kWindowPart = 16;

// Connections per listening endpoint that nobody has accepted yet: the channels kept in stock for
// them, fewer where a channel is so large that they would take more than kStockBytes.
inline constexpr std::uint32_t kBacklog = 16;
inline constexpr std::size_t kStockBytes = std::size_t{4} << 20;

// Clients of one daemon.
inline constexpr std::size_t kClients = 256;
// Places beyond those, for administrators to watch from.
inline constexpr std::size_t kOperatorPlaces = 8;

}  // namespace stp::service::limits
