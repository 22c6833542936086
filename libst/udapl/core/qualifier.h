// SPDX-License-Identifier: BSD-3-Clause
// Connection qualifiers have 64 bits, but upper-layer ports only 32. For a qualifier that is not a
// port, both sides compute a port, and the requester sends the qualifier along. Several qualifiers
// may map to one port.
#pragma once

#include <cstdint>

namespace stp::udapl {

[[nodiscard]] constexpr bool is_port(std::uint64_t conn_qual) {
  return conn_qual != 0 && conn_qual <= UINT32_MAX;
}

// Both sides compute it, so it is part of the wire protocol.
[[nodiscard]] constexpr std::uint32_t port_of(std::uint64_t conn_qual) {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  constexpr std::uint32_t kHigh = std::uint32_t{1} << 31;
  if (is_port(conn_qual)) return static_cast<std::uint32_t>(conn_qual);
  return kHigh | static_cast<std::uint32_t>(conn_qual * kSpread >> 33);
}

}  // namespace stp::udapl
