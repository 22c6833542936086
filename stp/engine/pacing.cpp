// SPDX-License-Identifier: BSD-3-Clause
// Receiver-driven pacing: CTS wait while too many granted bytes are on their way, so that many
// senders to one receiver do not overflow the switch before it (docs/protocol.md, section 10).
#include <algorithm>
#include <cerrno>

#include "stp/engine/impl.h"

namespace stp {
namespace {

constexpr std::uint32_t kMaxHeld = 1024;   // CTS of one connection
constexpr std::uint64_t kOldestEvery = 8;  // releases: that often age goes before size

}  // namespace

// The CTS just peeked would exceed the limit: it leaves the user's queue and waits here, so that
// the connection's other requests go on. False: it may be sent now.
// protocol: 10.8
bool Node::Impl::hold_grant(Vc& vc) {
  auto const& h = vc.sending.entry.header;
  if (config.granted_limit == 0 || granted == 0 || vc.held == kMaxHeld) return false;
  if (vc.connectionless()) return false;  // it grants nothing that could be counted
  if (h.param < wire::kMinBlocksize || h.param > wire::kMaxBlocksize) return false;  // refused next
  for (auto const& other : held) {
    auto const& o = other.entry.header;
    if (other.vc != vc.id || o.s_id != h.s_id || o.b_num != h.b_num) continue;
    finish_request(vc);  // a repeat of one that waits already
    return true;
  }
  auto const demand = vc.inbound.demand(h);
  if (demand.bytes == 0 || granted + demand.bytes <= config.granted_limit) return false;
  counters.add(Counter::kCtsHeld);
  held.push_back({vc.id, vc.sending.entry});
  ++vc.held;
  finish_request(vc);
  return true;
}

// Sends CTS that were held, those of the Transfers nearest to their end first.
// protocol: 10.9
std::size_t Node::Impl::release_grants(std::span<TxFrame> frames, Time now) {
  std::size_t count = 0;
  while (count < frames.size() && !held.empty()) {
    bool const by_age = releases % kOldestEvery == 0;
    auto best = held.end();
    Inbound::Demand best_demand;
    for (auto h = held.begin(); h != held.end(); ++h) {
      auto* const vc = find_vc(h->vc);
      if (vc == nullptr || !vc->credit.available()) continue;
      auto const demand = vc->inbound.demand(h->entry.header);
      if (granted != 0 && granted + demand.bytes > config.granted_limit) continue;
      if (best != held.end() && demand.remaining >= best_demand.remaining) continue;
      best = h;
      best_demand = demand;
      if (by_age) break;
    }
    if (best == held.end()) return count;
    ++releases;
    auto& vc = *find_vc(best->vc);
    auto const entry = best->entry;
    held.erase(best);
    --vc.held;
    if (check_request(vc, entry, now) != 0) {
      counters.add(Counter::kTxRefused);
      vc.channel.count_refused();
      continue;
    }
    spend_slot(vc, now);
    auto h = entry.header;
    h.d_port = vc.peer_port;
    h.s_port = vc.local_port;
    h.d_key = vc.peer_key;
    counters.add(Counter::kTxControl);
    ++vc.traffic.tx_control;
    emit(frames[count++], vc.peer_mac, h, vc.endpoint->config.checksum,
         std::as_bytes(std::span(entry.payload, entry.payload_length)), {}, false);
  }
  return count;
}

void Node::Impl::drop_held(Vc& vc) {
  if (vc.held == 0) return;
  std::erase_if(held, [&](const Held& h) { return h.vc == vc.id; });
  vc.held = 0;
}

// The Transfer has ended: its CTS must not begin it anew.
void Node::Impl::drop_held(Vc& vc, std::uint32_t r_id) {
  if (vc.held == 0) return;
  vc.held -= static_cast<std::uint32_t>(std::erase_if(
      held, [&](const Held& h) { return h.vc == vc.id && h.entry.header.s_id == r_id; }));
}

}  // namespace stp
