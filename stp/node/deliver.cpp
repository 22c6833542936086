// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/deliver.h"

#include <cstring>

namespace stp {

bool deliver(Vc& vc, WakeUps& wake_ups, const MacAddr& from, const wire::Header& header,
             Bytes payload, NodeChannel::Place place, std::uint64_t length) {
  ReceivedEntry entry{};
  entry.length = static_cast<std::uint32_t>(length);
  entry.header = header;
  entry.source_mac = from.to_u64();
  entry.payload_length = static_cast<std::uint8_t>(payload.size());
  if (!payload.empty()) std::memcpy(entry.payload, payload.data(), payload.size());
  const bool room = vc.channel.deliver(entry, place);
  // No room is urgent too: a user sleeping on a full queue must read.
  wake_ups.touch(vc, !room || header.has(wire::flag::kInterrupt));
  return room;
}

}  // namespace stp
