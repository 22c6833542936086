// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/unseen.h"

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

namespace {

using wire::Op;

bool same_place(const wire::Header& a, const wire::Header& b) {
  return a.mx == b.mx && a.bufx == b.bufx && a.offset == b.offset;
}

}  // namespace

Doubts::Doubts(const std::deque<Recorded>& trace, const MacAddr& station) {
  for (const auto& recorded : trace) {
    const auto& decoded = recorded.decoded;
    if (!decoded.well_formed()) continue;
    if (decoded.frame.src == station)
      say(decoded, line_of(recorded, station));
    else if (decoded.frame.dst == station)
      hear(decoded, line_of(recorded, station));
  }
}

// protocol: 7.9, 7.10
void Doubts::hear(const Decoded& decoded, const Line& line) {
  const auto& h = decoded.frame.header;
  if (h.op() == Op::kRequestToSend) {
    const auto [offer, fresh] = offers_.try_emplace({line, h.s_id}, h.t_len());
    if (!fresh && offer->second != h.t_len())
      other_offers_[{line, h.s_id}] = {decoded.time, decoded.number};
    offer->second = h.t_len();
  } else if (h.op() == Op::kClearToSend) {
    const auto [grant, fresh] = grants_.try_emplace({{line, h.s_id}, h.b_num}, h);
    if (!fresh && !same_place(grant->second, h))
      other_grants_[{line, h.s_id}] = {decoded.time, decoded.number};
    grant->second = h;
  } else if (h.op() == Op::kEnd) {
    offers_.erase({line, h.s_id});
  }
}

void Doubts::say(const Decoded& decoded, const Line& line) {
  const auto& h = decoded.frame.header;
  if (h.op() == Op::kClearToSend) doubt(other_offers_, {line, h.d_id}, decoded);
  if (h.op() == Op::kData) doubt(other_grants_, {line, h.d_id}, decoded);
  // From here on the id may belong to another Transfer.
  const bool over = h.op() == Op::kEndAck || h.has(wire::flag::kReject) ||
                    (h.op() == Op::kRequestStateResponse && h.offset != 0);
  if (over) offers_.erase({line, h.d_id});
}

void Doubts::doubt(const std::map<Id, Contradiction>& contradictions, const Id& id,
                   const Decoded& decoded) {
  const auto found = contradictions.find(id);
  if (found == contradictions.end() || decoded.time - found->second.time > kOnItsWay) return;
  transfers_.insert(transfer_of(decoded.frame));
  if (first_ == 0) first_ = found->second.frame;
}

Doubts::Transfer Doubts::transfer_of(const wire::Frame& sent) {
  const auto& h = sent.header;
  const bool data = h.op() == Op::kData;
  return {{h.s_port, sent.dst, h.d_port}, !data, data ? h.d_id : h.s_id};
}

bool Doubts::concern(const wire::Frame& in_trace) const {
  const auto op = in_trace.header.op();
  const bool of_transfer =
      op == Op::kData || op == Op::kClearToSend || op == Op::kRequestStateResponse;
  return of_transfer && transfers_.contains(transfer_of(in_trace));
}

bool Doubts::concern(const wire::Frame& live, const Renaming& names) const {
  return std::ranges::any_of(transfers_, [&](const Transfer& transfer) {
    if (names.live(Name::kPort, transfer.line.own) != live.header.s_port) return false;
    auto named = live;
    named.header.s_port = transfer.line.own;
    return concern(named);
  });
}

std::string Doubts::note() const {
  if (transfers_.empty()) return {};
  return std::to_string(transfers_.size()) +
         " Transfers are not compared: what the station does depends on which of two different "
         "RTS or CTS it had received, the first in frame " +
         std::to_string(first_);
}

namespace {

using wire::Op;
namespace flag = wire::flag;

// The station's reaction to a frame follows within this time.
constexpr std::int64_t kSoon = 2'000'000'000;
constexpr std::size_t kFarthest = 10'000;  // frames

}  // namespace

Shortage::Shortage(const std::deque<Recorded>& trace, const MacAddr& station)
    : trace_(trace), station_(station) {
  for (std::size_t at = 0; at < trace_.size(); ++at) {
    const auto& frame = trace_[at].decoded;
    if (frame.well_formed() && frame.frame.src == station_ &&
        header(at).op() == Op::kRequestStateResponse)
      answers_[{line_of(trace_[at], station_), header(at).sync}].push_back(at);
  }
  for (std::size_t at = 0; at < trace_.size(); ++at) {
    const auto& decoded = trace_[at].decoded;
    if (!decoded.well_formed()) continue;
    if (decoded.frame.dst == station_) hear(at);
    if (decoded.frame.src == station_) say(at);
  }
}

// A repeated CA changes nothing.
// protocol: 6.1
void Shortage::begin(const Line& line, std::uint32_t key, std::uint32_t slots) {
  auto& use = uses_[line];
  if (use.key == key) return;
  use = {};
  use.key = key;
  use.limit = slots;
}

void Shortage::say(std::size_t at) {
  const auto& h = header(at);
  const auto line = line_of(trace_[at], station_);
  if (h.op() == Op::kRequestConnection) asking_[h.s_port] = h.param;
  if (h.op() == Op::kConnectionAnswer && !h.has(flag::kReject)) begin(line, h.offset, h.param);
  const auto use = uses_.find(line);
  if (h.op() != Op::kRequestStateResponse || use == uses_.end()) return;
  // The count in the answer is from the time of the question, not of the answer.
  // protocol: 6.5
  const auto asked = use->second.asked.find(h.sync);
  if (asked != use->second.asked.end())
    use->second.limit = std::max(use->second.limit, asked->second + h.param);
}

// protocol: 6.2, 6.8
void Shortage::hear(std::size_t at) {
  const auto& h = header(at);
  const auto line = line_of(trace_[at], station_);
  if (h.op() == Op::kConnectionAnswer && !h.has(flag::kReject))
    if (const auto asking = asking_.find(h.d_port); asking != asking_.end())
      begin(line, h.offset, asking->second);
  const auto found = uses_.find(line);
  if (found == uses_.end()) return;
  auto& use = found->second;
  if (h.op() == Op::kData) return hear_data(at, use);
  const bool asks = h.op() == Op::kRequestState || h.has(flag::kSendState);
  if (wire::consumes_slot(h) && ++use.used > use.limit && asks && !answered(at, h.sync))
    dropped_.insert(at);
  if (asks) use.asked.try_emplace(h.sync, use.used);
}

// The STU that completes a Block is the one that needs a Slot.
// protocol: 6.9
void Shortage::hear_data(std::size_t at, Use& use) {
  const auto& h = header(at);
  const auto name = BlockName{h.d_id, h.b_num};
  auto& block = use.open[name];
  block.stus.insert(h.param);
  if (h.has(flag::kLast)) {
    block.last = h.param;
    block.silent = h.has(flag::kSilent);
    block.asked.reset();
    if (h.has(flag::kSendState)) block.asked = h.sync;
  }
  if (!block.whole()) return;
  if (!block.silent && ++use.used > use.limit && !taken(at, block)) {
    dropped_.insert(at);
    block.stus.erase(h.param);
    return;
  }
  if (block.asked) use.asked.try_emplace(*block.asked, use.used);
  use.open.erase(name);
}

bool Shortage::answered(std::size_t at, std::uint32_t sync) const {
  const auto answers = answers_.find({line_of(trace_[at], station_), sync});
  if (answers == answers_.end()) return false;
  const auto next = std::ranges::upper_bound(answers->second, at);
  return next != answers->second.end() &&
         trace_[*next].decoded.time - trace_[at].decoded.time <= kSoon;
}

// Whether the station has taken the Block that the frame at that place completes. Its RSR shows it:
// it answers Send_state at once, and later questions with its progress.
// protocol: 6.13, 6.15
bool Shortage::taken(std::size_t at, const Block& block) const {
  const auto& stu = header(at);
  const auto line = line_of(trace_[at], station_);
  const auto end = std::min(trace_.size(), at + kFarthest);
  std::set<std::uint32_t> asked_since;
  for (auto i = at + 1; i < end; ++i) {
    const auto& decoded = trace_[i].decoded;
    if (decoded.time - trace_[at].decoded.time > kSoon) break;
    if (!decoded.well_formed() || !(line_of(trace_[i], station_) == line)) continue;
    const auto& h = header(i);
    const bool heard = decoded.frame.dst == station_;
    const bool repeat = h.op() == Op::kData && h.d_id == stu.d_id && h.b_num == stu.b_num;
    if (heard && repeat && !block.asked) return true;
    if (heard && h.op() == Op::kRequestState) asked_since.insert(h.sync);
    if (heard || h.op() != Op::kRequestStateResponse) continue;
    if (h.sync == block.asked) return true;
    if (h.s_id == stu.d_id && asked_since.contains(h.sync)) return h.offset != stu.b_num;
  }
  return !block.asked;
}

namespace {

using wire::Op;

constexpr unsigned kQuestions = 5;
constexpr std::int64_t kLeastSilence = 2'000'000'000;

struct Silence {
  std::int64_t heard = 0;
  unsigned asked = 0;  // since then
};

}  // namespace

// protocol: 5.22, 5.23
GivenUp::GivenUp(const std::deque<Recorded>& trace, const MacAddr& station)
    : trace_(trace), station_(station) {
  std::map<Line, Silence> silences;
  for (std::size_t at = 0; at < trace_.size(); ++at) {
    const auto& decoded = trace_[at].decoded;
    if (!decoded.well_formed()) continue;
    const auto& h = decoded.frame.header;
    const auto line = line_of(trace_[at], station_);
    auto& silence = silences.try_emplace(line, Silence{decoded.time, 0}).first->second;
    if (decoded.frame.src == station_) {
      silence.asked += own_question(h) ? 1 : 0;
      // A side whose connection has failed only answers RD.
      if (h.op() != Op::kDisconnectAnswer) from_.erase(line);
    } else if (decoded.frame.dst == station_) {
      if (silence.asked >= kQuestions && decoded.time - silence.heard >= kLeastSilence)
        from_.try_emplace(line, at);
      silence = {decoded.time, 0};
    }
  }
}

bool GivenUp::ignores(std::size_t at) const {
  const auto& decoded = trace_[at].decoded;
  if (!decoded.well_formed() || decoded.frame.header.op() == Op::kRequestDisconnect) return false;
  const auto from = from_.find(line_of(trace_[at], station_));
  return from != from_.end() && at >= from->second;
}

}  // namespace stp::replay
