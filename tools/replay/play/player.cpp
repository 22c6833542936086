// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/player.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <set>

#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "tools/replay/play/doubts.h"
#include "tools/replay/play/link_subject.h"
#include "tools/replay/play/lives.h"
#include "tools/replay/play/node_subject.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Op;

// Extra time for the live side at the end of the trace.
constexpr std::int64_t kLastWords = 100'000'000;

// A trace does not show exactly when credit sufficed or when a Node asked for more. Whatever the
// trace shows as sent had credit, so the Node is given more Slots than it can use.
void give_plenty(wire::Header& h) {
  constexpr std::uint16_t kPlenty = 0xffff;
  const bool announces = h.op() == Op::kRequestConnection || h.op() == Op::kConnectionAnswer ||
                         h.op() == Op::kRequestStateResponse;
  if (announces && !h.has(wire::flag::kReject)) h.param = kPlenty;
}

// The frame with the live side's values in place of the station's own names.
std::vector<std::byte> translated(const Recorded& frame, const Renaming& names, bool plenty) {
  auto bytes = frame.bytes;
  if (!frame.decoded.has_header) return bytes;
  const auto& link = static_cast<const wire::LinkHeader&>(frame.decoded.frame);
  auto h = frame.decoded.frame.header;
  h.d_port = static_cast<std::uint16_t>(names.live(Name::kPort, h.d_port));
  h.d_key = names.live(Name::kKey, h.d_key);
  if (h.op() == Op::kData) h.mx = static_cast<std::uint16_t>(names.live(Name::kMx, h.mx));
  if (h.op() == Op::kRequestStateResponse && names.knows(Name::kSync, h.sync))
    h.sync = names.live(Name::kSync, h.sync);
  if (h.op() == Op::kRequestConnection) h.d_port = 0, h.d_key = frame.decoded.frame.header.d_key;
  if (plenty && frame.decoded.well_formed()) give_plenty(h);
  auto* const at = bytes.data() + link.size();
  const bool good = frame.decoded.cksum == Cksum::kGood;
  if (good) h.cksum = 0;
  wire::encode(h, at);
  if (!good) return bytes;
  const auto& f = frame.decoded.frame;
  wire::Checksum sum;
  sum.add({at, wire::kHeaderSize + f.option.size() + f.stu.size() + f.append.size()});
  wire::store16(at + wire::at::kCksum, sum.wire_value());
  return bytes;
}

bool sent_by(const Recorded& frame, const MacAddr& station) {
  return frame.decoded.well_formed() && frame.decoded.frame.src == station;
}

bool sent_to(const Recorded& frame, const MacAddr& station) {
  return (frame.decoded.has_header || frame.decoded.has_link) && frame.decoded.frame.dst == station;
}

// The stations whose frames are played to the station.
std::set<MacAddr> others(const std::deque<Recorded>& trace, const MacAddr& station) {
  std::set<MacAddr> found;
  for (const auto& frame : trace)
    if (sent_to(frame, station)) found.insert(frame.decoded.frame.src);
  return found;
}

PlayResult play(const std::deque<Recorded>& trace, const MacAddr& station, Renaming& names,
                const Doubts& doubts, Matcher& matcher, Subject& subject) {
  PlayResult result;
  for (std::size_t at = 0; at < trace.size(); ++at) {
    const auto& frame = trace[at];
    matcher.reach(frame.decoded.number);
    subject.advance(frame.decoded.time);
    if (sent_by(frame, station)) {
      if (subject.decide(at) && !doubts.concern(frame.decoded.frame)) {
        matcher.expect(frame);
        ++result.expected;
      }
    }
    if (sent_to(frame, station)) {
      const auto& h = frame.decoded.frame.header;
      if (frame.decoded.well_formed() && h.op() == Op::kRequestStateResponse &&
          !names.knows(Name::kSync, h.sync))
        matcher.question_over(h.sync);
      subject.deliver(at, translated(frame, names, subject.wants_credit()));
      ++result.delivered;
    }
  }
  matcher.trace_over();
  if (!trace.empty()) subject.advance(trace.back().decoded.time + kLastWords);
  if (auto note = doubts.note(); !note.empty()) result.notes.push_back(std::move(note));
  result.differences = matcher.differences();
  result.matched = result.expected;
  for (const auto& difference : result.differences)
    result.matched -= difference.in_trace.empty() ? 0 : 1;
  return result;
}

}  // namespace

bool mentions(const std::deque<Recorded>& trace, const MacAddr& station) {
  for (const auto& frame : trace)
    if (sent_by(frame, station) || sent_to(frame, station)) return true;
  return false;
}

namespace {

PlayResult refuse(std::string why) {
  PlayResult result;
  result.refused = std::move(why);
  return result;
}

PlayResult play_life(const std::deque<Recorded>& trace, const MacAddr& station) try {
  Renaming names;
  Matcher matcher(names);
  const Doubts doubts(trace, station);
  NodeSubject subject(trace, station, names, [&](const Recorded& frame) {
    if (!doubts.concern(frame.decoded.frame, names)) matcher.sent(frame);
  });
  if (!subject.refused().empty()) return refuse(subject.refused());
  auto result = play(trace, station, names, doubts, matcher, subject);
  result.troubles = subject.troubles();
  std::ranges::move(subject.notes(), std::back_inserter(result.notes));
  return result;
} catch (const std::bad_alloc&) {
  return refuse("there is no memory for what the users of " + to_string(station) +
                " grant and send");
}

void append(PlayResult& all, PlayResult more) {
  std::ranges::move(more.differences, std::back_inserter(all.differences));
  std::ranges::move(more.troubles, std::back_inserter(all.troubles));
  std::ranges::move(more.notes, std::back_inserter(all.notes));
  if (all.refused.empty()) all.refused = std::move(more.refused);
  all.delivered += more.delivered;
  all.expected += more.expected;
  all.matched += more.matched;
}

}  // namespace

PlayResult play_node(const std::deque<Recorded>& trace, const MacAddr& station) {
  const auto lives = lives_of(trace, station);
  if (lives.size() == 1) return play_life(trace, station);
  PlayResult all;
  for (const auto& life : lives) {
    if (life.begin != 0)
      all.notes.push_back(
          "the station has restarted after frame " +
          std::to_string(trace[life.begin - 1].decoded.number) +
          ", as it uses the Ports of live connections again: a new Node takes its place");
    append(all, play_life(piece_of(trace, life), station));
  }
  return all;
}

PlayResult play_link(const std::deque<Recorded>& trace, const MacAddr& station,
                     const std::string& link, std::string& error) {
  Renaming names;
  Matcher matcher(names);
  const Doubts doubts(trace, station);
  const auto compare = [&](const Recorded& frame) {
    if (!doubts.concern(frame.decoded.frame, names)) matcher.sent(frame);
  };
  const auto subject = LinkSubject::open(link, station, others(trace, station), compare, error);
  if (!subject) return {};
  auto result = play(trace, station, names, doubts, matcher, *subject);
  error = subject->error();
  return result;
}

}  // namespace stp::replay
