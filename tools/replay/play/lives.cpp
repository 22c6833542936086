// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/lives.h"

#include <algorithm>
#include <map>

namespace stp::replay {
namespace {

using wire::Op;

// What a Node says without knowing of any connection.
bool needs_no_memory(const wire::Header& h) {
  return h.op() == Op::kDisconnectAnswer ||
         (h.op() == Op::kConnectionAnswer && h.has(wire::flag::kReject));
}

}  // namespace

// protocol: 5.3
std::vector<Life> lives_of(const std::deque<Recorded>& trace, const MacAddr& station) {
  std::vector<Life> lives{{0, trace.size()}};
  std::map<std::uint16_t, std::uint32_t> keys;  // of live connections, by the station's Port
  std::size_t silent_from = 0;                  // behind the last frame that shows it alive
  for (std::size_t at = 0; at < trace.size(); ++at) {
    auto const& decoded = trace[at].decoded;
    if (!decoded.well_formed()) continue;
    auto const& h = decoded.frame.header;
    bool const sends = decoded.frame.src == station;
    if (!sends && decoded.frame.dst != station) continue;
    bool const begins = h.op() == Op::kRequestConnection ||
                        (h.op() == Op::kConnectionAnswer && !h.has(wire::flag::kReject));
    if (sends && begins) {
      auto const [known, fresh] = keys.try_emplace(h.s_port, h.offset);
      if (!fresh && known->second != h.offset) {
        lives.back().end = silent_from;
        lives.push_back({silent_from, trace.size()});
        keys = {{h.s_port, h.offset}};
      }
    }
    if (!begins && h.op() <= Op::kDisconnectComplete) keys.erase(sends ? h.s_port : h.d_port);
    if (sends && !needs_no_memory(h)) silent_from = at + 1;
  }
  return lives;
}

std::deque<Recorded> piece_of(const std::deque<Recorded>& trace, const Life& life) {
  std::deque<Recorded> piece;
  Decoder decoder;
  for (auto at = life.begin; at < life.end; ++at) {
    auto& frame = piece.emplace_back();
    frame.bytes = trace[at].bytes;
    auto const& original = trace[at].decoded;
    frame.decoded =
        decoder.decode({original.number, original.time, frame.bytes, original.wire_length});
  }
  return piece;
}

}  // namespace stp::replay
