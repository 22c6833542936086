// SPDX-License-Identifier: BSD-3-Clause
// Blocks that were granted and stay away: their CTS is sent again, naming the first byte that is
// missing, so that the sender repeats only the tail (docs/protocol.md, section 10).
#include <algorithm>

#include "stp/engine/impl.h"

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

// A sender that has not been scheduled is silent for as long as one whose frames got lost. How long
// that was lately, without anything being lost, tells what silence says now.
// protocol: 10.13
Time timeout_in_silence(const Vc& vc) {
  auto const pause = std::min(vc.inbound.silence().longest_pause(), kLongestPause);
  return std::max(shortest_timeout(vc), 2 * pause);
}

// When `block` counts as stalled. One that others have overtaken is judged by itself; one whose
// turn has not come waits while anything arrives on the connection.
// protocol: 10.4
Time stalled_at(const Vc& vc, const InboundBlock& block) {
  if (vc.inbound.overtaken(block))
    return block.progress + data_timeout(shortest_timeout(vc), block.repeats);
  return std::max({block.progress, vc.inbound.last_arrival(), vc.granted_at}) +
         data_timeout(timeout_in_silence(vc), block.repeats);
}

}  // namespace

// A Block was granted: from now on its progress is watched.
void Node::Impl::expect_data(Vc& vc, Time now) {
  if (!vc.endpoint->config.recover) return;
  leaves(vc, kGrantClock);
  if (vc.data_check != kNever) return;
  vc.data_check = now + shortest_timeout(vc);
  set_timer(vc);
}

// A Block whose interval had been doubled moves again: it is the first one's turn.
// protocol: 10.3
void Node::Impl::look_earlier(Vc& vc, Time now) {
  vc.data_check = std::min(vc.data_check, now + shortest_timeout(vc));
  set_timer(vc);
}

// protocol: 10.3, 10.5
std::size_t Node::Impl::recover_blocks(Vc& vc, Time now) {
  auto next = kNever;
  std::size_t looked = 0;
  auto* block = vc.inbound.first_open();
  while (block != nullptr && vc.inbound.overtaken(*block)) {
    auto* const after = vc.inbound.open_after(*block);
    bool const asked = stalled_at(vc, *block) <= now && ask_again(vc, *block, now);
    if (asked) vc.inbound.grant_again(*block);  // it is the last one now
    next = std::min(next, stalled_at(vc, *block));
    ++looked;
    block = after != nullptr || !asked ? after : block;
  }
  // Of the Blocks that nothing has overtaken this is the one granted first.
  ask_in_silence(vc, block, now);
  if (block != nullptr) next = std::min(next, stalled_at(vc, *block));
  work::count("Blocks of a connection", looked);
  // Without credit nothing can be asked; the look comes again a little later.
  vc.data_check = next == kNever ? kNever : std::max(next, now + kMinDataTimeout);
  return looked;
}

// Whether all is lost or only late, the answer to a few tells what the others need.
// protocol: 10.14
void Node::Impl::ask_in_silence(Vc& vc, GrantedBlock* block, Time now) {
  if (block == nullptr || stalled_at(vc, *block) > now) return;
  for (auto left = vc.inbound.silence().asks(); left > 0 && block != nullptr; --left) {
    if (stalled_at(vc, *block) <= now && !ask_again(vc, *block, now)) break;
    block = vc.inbound.open_after(*block);
  }
  vc.inbound.ask_in_silence();
}

// The CTS of `block`, for what is missing of it. False: there is no credit.
bool Node::Impl::ask_again(Vc& vc, InboundBlock& block, Time now) {
  if (!vc.credit.available()) return false;
  auto h = header_for(vc, wire::Op::kClearToSend);
  h.param = block.cts.param;
  h.mx = block.cts.mx;
  h.bufx = block.cts.bufx;
  h.offset = block.cts.offset;
  h.sync = vc.inbound.first_missing(block);
  h.b_num = block.cts.b_num;
  h.d_id = block.cts.d_id;
  h.s_id = block.cts.s_id;
  answer(vc.peer_mac, h, vc.endpoint->config.checksum);
  leaves(vc, kGrantClock);
  counters.add(Counter::kCtsRepeated);
  spend_slot(vc, now);
  ++block.repeats;
  block.progress = now;
  return true;
}

}  // namespace stp
