// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/given_up.h"

namespace stp::replay {
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
