// SPDX-License-Identifier: BSD-3-Clause
// A whole trace in memory. Playing needs it, because later frames determine what a user has to do.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/replay/decoded.h"

namespace stp::replay {

// A station's frame may reach the capture this long after it was sent, in nanoseconds.
inline constexpr std::int64_t kOnItsWay = 1'000'000;

struct Recorded {
  std::vector<std::byte> bytes;
  Decoded decoded;  // points into `bytes`
};

// Returns nullopt if the trace cannot be played: `error` says why.
std::optional<std::deque<Recorded>> record(Capture& capture, std::string& error);

// An RS with which a Node asks about its credit, or whether its peer is alive.
// protocol: 6.10
inline bool own_question(const wire::Header& h) {
  return h.op() == wire::Op::kRequestState && h.d_id == wire::kNoId && h.b_num == wire::kNoId;
}

// A connection as one side identifies it: its own Port, the peer's address and Port.
struct Line {
  std::uint16_t own = 0;
  MacAddr peer_mac;
  std::uint16_t peer = 0;
  friend auto operator<=>(const Line&, const Line&) = default;
};
// The Line of a frame from or to the station.
inline Line line_of(const Recorded& recorded, const MacAddr& station) {
  const auto& frame = recorded.decoded.frame;
  const auto& h = frame.header;
  return frame.src == station ? Line{h.s_port, frame.dst, h.d_port}
                              : Line{h.d_port, frame.src, h.s_port};
}

}  // namespace stp::replay
