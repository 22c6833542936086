// SPDX-License-Identifier: BSD-3-Clause
// A whole trace in memory, as playing needs it: what comes later decides what a user is made to do.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/replay/decoded.h"

namespace stp::replay {

struct Recorded {
  std::vector<std::byte> bytes;
  Decoded decoded;  // points into `bytes`
};

// nullopt: `error` says why it cannot be played.
std::optional<std::deque<Recorded>> record(Capture& capture, std::string& error);

// An RS by which a Node asks about its credit, or whether its peer lives.
// protocol: 6.10
inline bool own_question(const wire::Header& h) {
  return h.op() == wire::Op::kRequestState && h.d_id == wire::kNoId && h.b_num == wire::kNoId;
}

// Both ends of a connection as one side names it: its own Port, the peer's address and Port.
struct Line {
  std::uint16_t own = 0;
  MacAddr peer_mac;
  std::uint16_t peer = 0;
  friend auto operator<=>(const Line&, const Line&) = default;
};
// That of a frame of the station's, or to it.
inline Line line_of(const Recorded& recorded, const MacAddr& station) {
  const auto& frame = recorded.decoded.frame;
  const auto& h = frame.header;
  return frame.src == station ? Line{h.s_port, frame.dst, h.d_port}
                              : Line{h.d_port, frame.src, h.s_port};
}

}  // namespace stp::replay
