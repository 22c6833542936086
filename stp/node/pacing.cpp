// SPDX-License-Identifier: BSD-3-Clause
// Receiver-driven pacing: CTS wait while too many granted bytes are on their way, so that many
// senders to one receiver do not overflow the switch before it (docs/protocol.md, section 10).
#include <algorithm>

#include "stp/node/impl.h"

namespace stp {
namespace {

constexpr std::uint32_t kMaxHeld = 4096;   // CTS of one owner; more are not held back
constexpr std::uint64_t kOldestEvery = 8;  // releases: that often age goes before size
// Grants of a connection from which nothing has come for so long hold up no others. A sender may
// have its reasons to wait; those who wait for it would not know them.
// protocol: 10.12
constexpr Time kGrantPatience = 20 * kMillisecond;
constexpr unsigned kMostLooks = 32;     // connections looked at at once: the others are next
constexpr unsigned kMostReleased = 32;  // CTS in one burst

}  // namespace

// The CTS just peeked would exceed the limit: it leaves the user's queue and waits here, so that
// the connection's other requests go on. False: it may be sent now.
// protocol: 10.8
bool Node::Impl::hold_grant(Vc& vc, Time now) {
  auto const& h = vc.sending.entry.header;
  if (config.granted_limit == 0 || vc.connectionless()) return false;
  if (h.param < wire::kMinBlocksize || h.param > wire::kMaxBlocksize) return false;  // refused next
  HeldGrants::Transfer const transfer{vc.id, h.s_id};
  if (held.contains(transfer, h.b_num)) {
    finish_request(vc);  // a repeat of one that waits already
    return true;
  }
  write_off_grants(now);
  auto const demand = vc.inbound.demand(wire::decode_as<wire::ClearToSend>(h));
  auto& owner = *vc.endpoint->owner;
  if (demand.bytes == 0 || owner.granted == 0 || owner.held == kMaxHeld) return false;
  if (granted.bytes + demand.bytes <= config.granted_limit) return false;
  granted.look_again = true;
  hold(vc, transfer, demand);
  return true;
}

void Node::Impl::hold(Vc& vc, const HeldGrants::Transfer& transfer, const Inbound::Demand& demand) {
  counters.add(Counter::kCtsHeld);
  held.push(transfer, vc.endpoint->owner_id, vc.sending.entry, demand);
  ++vc.held;
  ++vc.endpoint->owner->held;
  finish_request(vc);
}

// The CTS just peeked was refused: its owner has no memory to keep track of the Block. It waits
// until there is some. False: too many do.
// protocol: 7.19
bool Node::Impl::hold_for_memory(Vc& vc, Time now) {
  auto const& h = vc.sending.entry.header;
  HeldGrants::Transfer const transfer{vc.id, h.s_id};
  if (vc.endpoint->owner->held == kMaxHeld) return false;
  if (held.contains(transfer, h.b_num)) {
    finish_request(vc);
    return true;
  }
  memory_look = std::min(memory_look, now + kGrantPatience);
  hold(vc, transfer, vc.inbound.demand(wire::decode_as<wire::ClearToSend>(h)));
  return true;
}

// What other connections of an owner that lacks memory remember of Transfers that are over.
void Node::Impl::forget_idle_transfers() {
  constexpr unsigned kLooks = 512, kForgotten = 16;
  for (unsigned looks = 0, forgotten = 0; looks < kLooks && forgotten < kForgotten; ++looks) {
    work::count("connections that may remember less");
    idle_look = (idle_look + 1) % vcs.places();
    auto* const vc = vcs.at(static_cast<std::uint16_t>(idle_look));
    if (vc == nullptr || !vc->endpoint->owner->windows->is_short()) continue;
    while (forgotten < kForgotten && vc->inbound.forget_oldest()) ++forgotten;
  }
}

// Sends CTS that were held, those of the Transfers nearest to their end first.
// protocol: 10.9
std::size_t Node::Impl::release_grants(std::span<TxFrame> frames, Time now) {
  std::size_t count = 0;
  if (now >= memory_look) forget_idle_transfers();
  if (window_freed || now >= memory_look) granted.look_again = true;
  window_freed = false;
  if (now >= memory_look) memory_look = kNever;
  // Refused ones count as well: that many are looked at.
  for (auto left = kMostReleased; left > 0 && count < frames.size() && !held.empty() &&
                                  (granted.look_again || granted.bytes <= release_from);
       --left) {
    auto smallest = ~std::uint64_t{0};
    Vc* starved = nullptr;
    std::uint64_t lacks = 0;
    auto const chosen =
        held.choose(releases % kOldestEvery == 0, [&](VcId id, const Inbound::Demand& demand) {
          auto* const vc = find_vc(id);
          if (vc == nullptr || !vc->credit.available()) return HeldGrants::Fit::kNoCredit;
          auto const& owner = *vc->endpoint->owner;
          if (!vc->inbound.has_room(demand.memory)) {
            memory_look = std::min(memory_look, now + kGrantPatience);
            if (starved == nullptr) {
              starved = vc;
              lacks = demand.memory;
            }
            return HeldGrants::Fit::kTooMuch;
          }
          smallest = std::min(smallest, demand.bytes);
          bool const fits = config.granted_limit == 0 || owner.granted == 0 ||
                            granted.bytes + demand.bytes <= config.granted_limit;
          return fits ? HeldGrants::Fit::kFits : HeldGrants::Fit::kTooMuch;
        });
    if (!chosen) {
      // What its connection remembers of Transfers that are over goes first.
      if (granted.look_again && starved != nullptr && starved->inbound.has_memory(lacks)) continue;
      granted.look_again = false;
      release_from = config.granted_limit - std::min(smallest, config.granted_limit);
      return count;
    }
    ++releases;
    if (send_held(*chosen, frames[count], now)) ++count;
  }
  return count;
}

// False: its user may not send it any more.
bool Node::Impl::send_held(const HeldGrants::Transfer& transfer, TxFrame& frame, Time now) {
  auto& vc = *find_vc(transfer.first);
  auto const entry = held.pop(transfer);
  --vc.held;
  --vc.endpoint->owner->held;
  if (auto const error = check_request(vc, entry, now); error != 0) {
    if (error == -EDQUOT)
      hold_again(vc, transfer, entry, now);
    else if (error != -EALREADY)  // a repeat that came too late is dropped in silence
      count_refused(vc, error);
    return false;
  }
  spend_slot(vc, now);
  auto h = entry.header;
  h.d_port = vc.peer_port;
  h.s_port = vc.local_port;
  h.d_key = vc.peer_key;
  counters.add(Counter::kTxControl);
  ++vc.traffic.tx_control;
  emit(frame, vc.peer_mac, h, vc.endpoint->config.checksum,
       std::as_bytes(std::span(entry.payload, entry.payload_length)), {}, false);
  return true;
}

// It takes more memory than when it was held, its Transfer was forgotten say: it waits on.
void Node::Impl::hold_again(Vc& vc, const HeldGrants::Transfer& transfer, const SendEntry& entry,
                            Time now) {
  held.push(transfer, vc.endpoint->owner_id, entry,
            vc.inbound.demand(wire::decode_as<wire::ClearToSend>(entry.header)));
  ++vc.held;
  ++vc.endpoint->owner->held;
  memory_look = std::min(memory_look, now + kGrantPatience);
}

// From now on it is seen whether anything comes of this connection's grants.
void Node::Impl::watch_grants(Vc& vc, Time now) {
  if (config.granted_limit == 0 || vc.in<IsWatched>()) return;
  vc.look_at = now + kGrantPatience;
  watched.push_back(vc);
}

// protocol: 10.12
void Node::Impl::write_off_grants(Time now) {
  for (auto left = kMostLooks; left > 0 && !watched.empty() && watched.front().look_at <= now;
       --left) {
    auto& vc = watched.pop_front();
    work::count("connections whose grants are watched");
    if (vc.inbound.outstanding() == 0) continue;
    if (now - vc.inbound.open_blocks().silent_since() >= kGrantPatience) vc.inbound.write_off();
    vc.look_at = now + kGrantPatience;
    watched.push_back(vc);
  }
}

// Nobody has to look while nothing is held back.
Time Node::Impl::pacing_deadline() const {
  if (held.empty()) return kNever;
  return watched.empty() ? memory_look : std::min(watched.front().look_at, memory_look);
}

void Node::Impl::drop_held(Vc& vc) {
  if (vc.held == 0) return;
  vc.endpoint->owner->held -= held.drop(vc.id);
  vc.held = 0;
  held.tidy(kTidiedAtOnce);
}

// The Transfer has ended: its CTS must not begin it anew.
void Node::Impl::drop_held(Vc& vc, std::uint32_t r_id) {
  if (vc.held == 0) return;
  auto const count = held.drop(HeldGrants::Transfer{vc.id, r_id});
  vc.held -= count;
  vc.endpoint->owner->held -= count;
  held.tidy(kTidiedAtOnce);
}

}  // namespace stp
