// SPDX-License-Identifier: BSD-3-Clause
// Notices that a capture has the frames of one direction only, as it is made on a host whose own
// frames pass the capturing program by.
#include <utility>

#include "tools/replay/check/checker_impl.h"
#include "tools/replay/datagram.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Op;

// Of one direction. Further ones are of the same kind.
constexpr std::size_t kMostHeld = 64;

// Whether the sender has heard from the receiver: a connection is up, or ends. Others may be the
// frames of a station that nobody answers, or of one that speaks to an endpoint.
bool presupposes_answer(Op op) {
  return op != Op::kRequestConnection && op != Op::kRequestDisconnect && op != Op::kData &&
         op != Op::kRequestState && op != Op::kNoOperation;
}

}  // namespace

void Checker::Impl::note_direction(const Decoded& frame) {
  const auto src = frame.frame.src.to_u64(), dst = frame.frame.dst.to_u64();
  if (src == dst) return;
  const StationPair pair{std::min(src, dst), std::max(src, dst)};
  auto* seen = stations.find(pair);
  if (seen == nullptr) seen = &stations.put(pair, {});
  auto& way = src < dst ? seen->up : seen->down;
  if (++way.frames == 1) {
    for (auto& held : std::exchange(seen->held, {})) {
      Decoded earlier;
      earlier.number = held.frame;
      earlier.time = held.time;
      report(earlier, held.rule, std::move(held.expected), std::move(held.seen), options.lossy);
    }
  }
  if (way.first != 0 || !presupposes_answer(frame.frame.header.op())) return;
  way.first = frame.number;
  way.time = frame.time;
  if (!frame.ends) return;
  way.from = end_text(frame.ends->source, frame.ends->from);
  way.to = end_text(frame.ends->destination, frame.ends->to);
}

bool Checker::Impl::was_answered(const Decoded& frame) {
  const auto src = frame.frame.src.to_u64(), dst = frame.frame.dst.to_u64();
  const auto* const seen = stations.find({std::min(src, dst), std::max(src, dst)});
  return src == dst || seen == nullptr || (src < dst ? seen->down : seen->up).frames != 0;
}

void Checker::Impl::report_if_answered(const Decoded& frame, Rule rule, std::string expected,
                                       std::string seen) {
  if (was_answered(frame))
    return report(frame, rule, std::move(expected), std::move(seen), options.lossy);
  const auto src = frame.frame.src.to_u64(), dst = frame.frame.dst.to_u64();
  auto& held = stations.find({std::min(src, dst), std::max(src, dst)})->held;
  if (held.size() < kMostHeld)
    held.push_back({frame.number, frame.time, rule, std::move(expected), std::move(seen)});
}

void Checker::Impl::tell_one_sided() {
  for (const auto& [pair, seen] : stations) {
    const bool up = seen.up.first != 0 && seen.down.frames == 0;
    const bool down = seen.down.first != 0 && seen.up.frames == 0;
    if (!up && !down) continue;
    const auto& way = up ? seen.up : seen.down;
    const bool udp = !way.from.empty();
    const auto from = udp ? way.from : to_string(MacAddr::from_u64(up ? pair.low : pair.high));
    const auto to = udp ? way.to : to_string(MacAddr::from_u64(up ? pair.high : pair.low));
    sink(
        {way.first, way.time, epoch, Rule::kOneSided, "",
         "the capture has " + std::to_string(way.frames) + " frames from " + from + " to " + to +
             ", and none back, so most rules cannot be applied; " +
             (udp ? "a filter of tcpdump by source or destination leaves one direction out, and so "
                    "may ways that differ: capture at one of the two hosts, or with stpctl trace"
                  : "tcpdump and dumpcap on a host that runs stpd see only what it receives: "
                    "capture with stpctl trace")});
  }
}

}  // namespace stp::replay
