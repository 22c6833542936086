// SPDX-License-Identifier: BSD-3-Clause
// The Message Sequence Number of a managed write: the first word of the option payload of its RTS,
// and of an END that takes the write back (docs/protocol.md, section 9). 0: not numbered.
#pragma once

#include "stp/channel/layout.h"
#include "stp/wire/big_endian.h"

namespace stp {

inline void store_msn(SendEntry& entry, std::uint32_t msn) {
  entry.payload_length = wire::kOptionSize;
  wire::store32(reinterpret_cast<std::byte*>(entry.payload), msn);
}

inline std::uint32_t load_msn(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return 0;
  return wire::load32(reinterpret_cast<const std::byte*>(entry.payload));
}

}  // namespace stp
