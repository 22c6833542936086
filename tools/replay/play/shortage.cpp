// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/shortage.h"

#include <algorithm>

namespace stp::replay {
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

}  // namespace stp::replay
