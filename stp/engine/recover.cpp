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
  return std::max(shortest_timeout(vc), 2 * std::min(vc.inbound.longest_pause(), kLongestPause));
}

// When `block` counts as stalled. One that others have overtaken is judged by itself; one whose
// turn has not come waits while anything arrives on the connection.
// protocol: 10.4
Time stalled_at(const Vc& vc, const InboundBlock& block) {
  bool const overtaken = block.serial <= vc.inbound.latest_serial();
  if (overtaken) return block.progress + data_timeout(shortest_timeout(vc), block.repeats);
  return std::max(block.progress, vc.inbound.last_arrival()) +
         data_timeout(timeout_in_silence(vc), block.repeats);
}

}  // namespace

// A Block was granted: from now on its progress is watched.
void Node::Impl::expect_data(Vc& vc, Time now) {
  if (!vc.endpoint->config.recover || vc.data_check != kNever) return;
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
void Node::Impl::recover_blocks(Vc& vc, Time now) {
  vc.data_check = kNever;
  vc.inbound.for_each_open([&](InboundBlock& block) {
    if (stalled_at(vc, block) <= now && vc.credit.available()) {
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
      counters.add(Counter::kCtsRepeated);
      vc.channel.count_cts_repeated();
      spend_slot(vc, now);
      ++block.repeats;
      block.progress = now;
    }
    // Without credit nothing can be asked; the look comes again a little later.
    auto const next = std::max(stalled_at(vc, block), now + kMinDataTimeout);
    vc.data_check = std::min(vc.data_check, next);
  });
}

}  // namespace stp
