// SPDX-License-Identifier: BSD-3-Clause
// What requests for a region by name carry: the first word of the RMR's option payload is the name
// (as a Message Sequence Number is in an RTS); the option payload of the MRA holds the terms.
#pragma once

#include "stp/channel/layout.h"
#include "stp/transfer/message_number.h"
#include "stp/transfer/sequencer.h"
#include "stp/wire/big_endian.h"

namespace stp {

// protocol: 9.29
inline void store_name(SendEntry& entry, std::uint32_t name) {
  if (name != 0) store_msn(entry, name);
}

inline std::uint32_t load_name(const ReceivedEntry& entry) {
  return load_msn(entry);
}

inline void store_terms(SendEntry& entry, const RegionTerms& terms) {
  entry.payload_length = wire::kOptionSize;
  auto* const at = reinterpret_cast<std::byte*>(entry.payload);
  wire::store64(at, terms.base);
  wire::store32(at + 8, terms.access);
}

inline RegionTerms load_terms(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return {};
  const auto* const at = reinterpret_cast<const std::byte*>(entry.payload);
  return {wire::load64(at), wire::load32(at + 8)};
}

}  // namespace stp
