// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/lives.h"

#include <algorithm>
#include <map>

namespace stp::replay {
namespace {

using wire::Op;

// A connection of the station, from its first frame to the last that the station has sent on it.
struct Span {
  std::uint32_t key = 0;
  std::size_t begin = 0, last = 0;
  unsigned ends = 0;         // RD of the station
  bool over = false;         // for the station
  bool just_called = false;  // the last received frame was a CA

  void sends(const wire::Header& h, std::size_t at);
  void receives(const wire::Header& h);
};
using Spans = std::map<std::uint16_t, Span>;  // the newest, by the station's Port

// Ignores what a Node also sends without a connection: DA, a refusal, and the RD that answers an
// unexpected CA. protocol: 5.9, 5.12
void Span::sends(const wire::Header& h, std::size_t at) {
  constexpr unsigned kTries = 8;
  const bool closes = h.op() == Op::kRequestDisconnect;
  if (h.op() == Op::kDisconnectAnswer || (closes && just_called)) return;
  ends += closes ? 1 : 0;
  over = over || ends >= kTries || h.op() == Op::kDisconnectComplete;
  last = at;
}

void Span::receives(const wire::Header& h) {
  just_called = h.op() == Op::kConnectionAnswer;
  over = over || h.op() == Op::kRequestDisconnect;
}

// Returns the earliest place after the last frame of `old` from which no earlier connection sends.
std::size_t restart_behind(const Span& old, const Spans& spans, const std::vector<Span>& gone) {
  auto place = old.last + 1;
  const auto pass = [&](const Span& span) {
    const bool goes_on = span.begin < place && span.last >= place;
    if (goes_on) place = span.last + 1;
    return goes_on;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [port, span] : spans) moved = pass(span) || moved;
    for (const auto& span : gone) moved = pass(span) || moved;
  }
  return place;
}

}  // namespace

// protocol: 5.3
std::vector<Life> lives_of(const std::deque<Recorded>& trace, const MacAddr& station) {
  std::vector<Life> lives{{0, trace.size()}};
  Spans spans;
  std::vector<Span> gone;  // their Ports were reused by others
  for (std::size_t at = 0; at < trace.size(); ++at) {
    const auto& decoded = trace[at].decoded;
    if (!decoded.well_formed()) continue;
    const auto& h = decoded.frame.header;
    const bool sends = decoded.frame.src == station;
    if (!sends && decoded.frame.dst != station) continue;
    const bool begins = h.op() == Op::kRequestConnection ||
                        (h.op() == Op::kConnectionAnswer && !h.has(wire::flag::kReject));
    auto known = spans.find(sends ? h.s_port : h.d_port);
    if (sends && begins && known != spans.end() && known->second.key != h.offset) {
      const auto old = known->second;
      const auto place = restart_behind(old, spans, gone);
      if (!old.over && place <= at) {
        lives.back().end = place;
        lives.push_back({place, trace.size()});
        std::erase_if(spans, [&](const auto& span) { return span.second.begin < place; });
        gone.clear();
      } else {
        gone.push_back(old);
      }
      spans.erase(h.s_port);
      known = spans.end();
    }
    if (sends && begins && known == spans.end())
      known = spans.try_emplace(h.s_port, Span{.key = h.offset, .begin = at, .last = at}).first;
    if (known == spans.end()) continue;
    if (sends)
      known->second.sends(h, at);
    else
      known->second.receives(h);
  }
  return lives;
}

std::deque<Recorded> piece_of(const std::deque<Recorded>& trace, const Life& life) {
  std::deque<Recorded> piece;
  Decoder decoder;
  for (auto at = life.begin; at < life.end; ++at) {
    auto& frame = piece.emplace_back();
    frame.bytes = trace[at].bytes;
    const auto& original = trace[at].decoded;
    frame.decoded =
        decoder.decode({original.number, original.time, frame.bytes, original.wire_length});
  }
  return piece;
}

}  // namespace stp::replay
