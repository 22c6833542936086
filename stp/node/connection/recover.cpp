// SPDX-License-Identifier: BSD-3-Clause
// Recovery of granted Blocks that do not arrive: repeats their CTS with the first missing byte, so
// that the sender repeats only the tail (docs/protocol.md, section 10).
#include <algorithm>

#include "stp/node/impl.h"

namespace stp {
namespace {

constexpr Time kMinDataTimeout = kMillisecond;
constexpr Time kLongestPause = 10 * kMillisecond;
constexpr unsigned kMaxDoublings = 10;

Time data_timeout(Time base, unsigned repeats) {
  return std::min(base << std::min(repeats, kMaxDoublings), kSecond);
}

Time shortest_timeout(const Vc& vc) {
  return std::max(4 * vc.round_trip.smoothed(), kMinDataTimeout);
}

// The allowed silence. A sender that is not scheduled is silent for as long as one whose frames
// were lost. The recent silences without loss tell how long to wait now.
// protocol: 10.13
Time timeout_in_silence(const Vc& vc) {
  const auto pause = std::min(vc.inbound.open_blocks().silence().longest_pause(), kLongestPause);
  return std::max(shortest_timeout(vc), 2 * pause);
}

// Since when `block` has made no progress although its sender could have sent.
Time idle_since(const Vc& vc, const InboundBlock& block) {
  return std::max(
      {block.progress, vc.inbound.open_blocks().last_arrival(), vc.granted_at, vc.no_slot_until});
}

// When `block` counts as stalled. An overtaken Block is judged by itself; a Block whose turn has
// not come waits while anything arrives on the connection.
// protocol: 10.4
Time stalled_at(const Vc& vc, const InboundBlock& block) {
  if (vc.inbound.open_blocks().overtaken(block))
    return block.progress + data_timeout(shortest_timeout(vc), block.repeats);
  return idle_since(vc, block) + data_timeout(timeout_in_silence(vc), block.repeats);
}

// When to request a Block that is stalled in silence: its sender has seen the grant and has had
// time to answer. kNever: not known.
// protocol: 10.21
Time lost_at(const Vc& vc, const InboundBlock& block) {
  const auto read = vc.doubt.read_since(idle_since(vc, block));
  return read == kNever ? kNever : read + vc.round_trip.timeout();
}

}  // namespace

// A Block was granted: watches its progress from now on.
void Node::Impl::expect_data(Vc& vc, Time now) {
  if (!vc.endpoint->config.recover) return;
  departures.leaves(vc, NodeDepartures::kGrantClock);
  if (vc.data_check != kNever) return;
  vc.data_check = now + shortest_timeout(vc);
  set_timer(vc);
}

// A Block whose interval had been doubled makes progress again: brings the next check forward to
// the shortest timeout.
// protocol: 10.3
void Node::Impl::look_earlier(Vc& vc, Time now) {
  vc.data_check = std::min(vc.data_check, now + shortest_timeout(vc));
  set_timer(vc);
}

// protocol: 10.3, 10.5
std::size_t Node::Impl::recover_blocks(Vc& vc, Time now) {
  auto next = kNever;
  std::size_t looked = 0;
  auto* block = vc.inbound.open_blocks().first();
  while (block != nullptr && vc.inbound.open_blocks().overtaken(*block)) {
    auto* const after = vc.inbound.open_blocks().after(*block);
    const bool asked = stalled_at(vc, *block) <= now && ask_again(vc, *block, now);
    if (asked) vc.inbound.open_blocks().grant_again(*block);  // it moves to the end
    next = std::min(next, stalled_at(vc, *block));
    ++looked;
    block = after != nullptr || !asked ? after : block;
  }
  // The earliest granted Block that nothing has overtaken.
  next = std::min(next, ask_in_silence(vc, block, now));
  work::count("Blocks of a connection", looked);
  // Without credit nothing can be requested; checks again a little later.
  vc.data_check = next == kNever ? kNever : std::max(next, now + kMinDataTimeout);
  return looked;
}

// Requests only a few Blocks: whether all is lost or only late, their answers tell what the others
// need. Returns when to check again.
// protocol: 10.14
Time Node::Impl::ask_in_silence(Vc& vc, GrantedBlock* block, Time now) {
  // A sender without a free Slot here is not silent.
  if (block != nullptr && vc.channel.free_slots() == 0)
    vc.no_slot_until = now + SlotQuestions::kLongestPause;
  if (block == nullptr || stalled_at(vc, *block) > now) {
    vc.doubt.is_over();
    return block == nullptr ? kNever : stalled_at(vc, *block);
  }
  if (const auto lost = lost_at(vc, *block); lost > now) {
    if (lost == kNever) ask_whether_seen(vc, now);
    return std::min(lost, vc.questions.repeat_at());
  }
  auto* const first = block;
  for (auto left = vc.inbound.open_blocks().silence().asks(); left > 0 && block != nullptr;
       --left) {
    const bool due = stalled_at(vc, *block) <= now && lost_at(vc, *block) <= now;
    if (due && !ask_again(vc, *block, now)) break;
    block = vc.inbound.open_blocks().after(*block);
  }
  vc.inbound.open_blocks().ask_in_silence();
  vc.doubt.is_over();
  return block == nullptr ? stalled_at(vc, *first)
                          : std::min(stalled_at(vc, *first), stalled_at(vc, *block));
}

// protocol: 10.21
void Node::Impl::ask_whether_seen(Vc& vc, Time now) {
  vc.doubt.begin(now);
  if (vc.questions.is_open()) return;  // an earlier one; its answer brings the next check
  ask_slots(vc, Ask::kSilence, now);
  vc.doubt.ask(vc.questions.sync(), now);
}

// An RSR arrived for the RS that asked whether the sender has seen what it was sent.
void Node::Impl::doubt_answered(Vc& vc, std::uint32_t sync, std::uint32_t slots, Time now) {
  if (!vc.doubt.is_open()) return;
  vc.data_check = now;
  if (vc.doubt.is_answer(sync))
    vc.data_check += vc.doubt.answered(slots >= vc.peer_slots, now)
                         ? vc.round_trip.timeout()
                         : vc.doubt.pause(shortest_timeout(vc));
}

// Sends the CTS of `block` for its missing part. False: no credit.
bool Node::Impl::ask_again(Vc& vc, InboundBlock& block, Time now) {
  if (!vc.credit.available()) return false;
  auto cts = block.cts;
  cts.f_offset = block.first_missing(vc.inbound.tiles());
  answer(vc.peer_mac, header_for(vc, cts), vc.endpoint->config.checksum);
  departures.leaves(vc, NodeDepartures::kGrantClock);
  counters.add(Counter::kCtsRepeated);
  spend_slot(vc, now);
  ++block.repeats;
  block.progress = now;
  return true;
}

}  // namespace stp
