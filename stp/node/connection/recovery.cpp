// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/recovery.h"

#include <algorithm>
#include <array>

#include "stp/base/work_meter.h"

namespace stp {
namespace {

constexpr Time kMinDataTimeout = RecoveryState::kMinDataTimeout;
constexpr Time kLongestPause = 10 * kMillisecond;
constexpr unsigned kMaxDoublings = 10;

Time data_timeout(Time base, unsigned repeats) {
  return std::min(base << std::min(repeats, kMaxDoublings), kSecond);
}

Time shortest_timeout(const Vc& vc) {
  return RecoveryState::shortest_timeout(vc.round_trip);
}

}  // namespace

// The allowed silence. A sender that is not scheduled is silent for as long as one whose frames
// were lost. The recent silences without loss tell how long to wait now.
// protocol: 10.13
Time Recovery::timeout_in_silence(const Vc& vc) {
  const auto pause = std::min(vc.inbound.open_blocks().silence().longest_pause(), kLongestPause);
  return std::max(shortest_timeout(vc), 2 * pause);
}

// Since when `block` has made no progress although its sender could have sent.
Time Recovery::idle_since(const Vc& vc, const InboundBlock& block) {
  return std::max({block.progress, vc.inbound.open_blocks().silent_since(), vc.recovery.granted_at_,
                   vc.recovery.no_slot_until_});
}

// When `block` counts as stalled. An overtaken Block is judged by itself; a Block whose turn has
// not come waits while anything arrives on the connection.
// protocol: 10.4, 10.22
Time Recovery::stalled_at(const Vc& vc, const InboundBlock& block) {
  if (vc.inbound.open_blocks().lost(block)) return block.progress;
  if (vc.inbound.open_blocks().overtaken(block))
    return block.progress + data_timeout(shortest_timeout(vc), block.repeats);
  return idle_since(vc, block) + data_timeout(timeout_in_silence(vc), block.repeats);
}

// When to request a Block that is stalled in silence: its sender has seen the grant and has had
// time to answer. kNever: not known.
// protocol: 10.21
Time Recovery::lost_at(const Vc& vc, const InboundBlock& block) {
  const auto read = vc.recovery.doubt_.read_since(idle_since(vc, block));
  return read == kNever ? kNever : read + vc.round_trip.timeout();
}

void Recovery::expect_data(Vc& vc, Time now) {
  if (!vc.endpoint->config.recover) return;
  use_.departures.leaves(vc, NodeDepartures::kGrantClock);
  if (vc.recovery.check_at_ != kNever) return;
  vc.recovery.check_at_ = now + shortest_timeout(vc);
  use_.timers.update(vc);
}

// Brings the next check forward to the shortest timeout.
void Recovery::look_earlier(Vc& vc, Time now) {
  vc.recovery.check_at_ = std::min(vc.recovery.check_at_, now + shortest_timeout(vc));
  use_.timers.update(vc);
}

// The rest is found by the next check.
void Recovery::ask_for_lost(Vc& vc, Time now) {
  constexpr unsigned kAtOnce = 16;
  if (!vc.endpoint->config.recover) return;
  auto& open = vc.inbound.open_blocks();
  auto* block = open.first();
  for (unsigned asked = 0; asked != kAtOnce && block != nullptr && open.lost(*block); ++asked) {
    if (!ask_again(vc, *block, now)) return;
    open.grant_again(*block);
    block = open.first();
  }
}

// Its Last has arrived, and what is missing is so far behind that it is lost.
void Recovery::ask_for_rest(Vc& vc, GrantedBlock& block, Time now) {
  auto& open = vc.inbound.open_blocks();
  if (!vc.endpoint->config.recover || !open.lost_before_last(block)) return;
  if (ask_again(vc, block, now)) open.grant_rest_again(block);
}

std::size_t Recovery::check(Vc& vc, Time now) {
  if (now < vc.recovery.check_at_) return 0;
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
  vc.recovery.check_at_ = next == kNever ? kNever : std::max(next, now + kMinDataTimeout);
  return looked;
}

// Requests only a few Blocks: whether all is lost or only late, their answers tell what the others
// need. Returns when to check again.
// protocol: 10.14
Time Recovery::ask_in_silence(Vc& vc, GrantedBlock* block, Time now) {
  auto& doubt = vc.recovery.doubt_;
  // A sender without a free Slot here is not silent.
  if (block != nullptr && vc.channel.free_slots() == 0) vc.recovery.has_no_slot(now);
  if (block == nullptr || stalled_at(vc, *block) > now) {
    doubt.is_over();
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
  doubt.is_over();
  return block == nullptr ? stalled_at(vc, *first)
                          : std::min(stalled_at(vc, *first), stalled_at(vc, *block));
}

// protocol: 10.21
void Recovery::ask_whether_seen(Vc& vc, Time now) {
  vc.recovery.doubt_.begin(now);
  if (vc.questions.is_open()) return;  // an earlier one; its answer brings the next check
  use_.states.ask(vc, StateExchange::Ask::kState, now);
  vc.recovery.doubt_.ask(vc.questions.sync(), now);
}

// What a repeated CTS tells of a Block of which some STUs have arrived after a missing one, or of
// which only a part has been asked for.
// protocol: 10.23, 13.19
OptionPayload Recovery::missing_of(const InboundBlock& block, const Tiles& tiles) {
  const auto first = block.stus.first_missing();
  if (!block.is_part() && !block.stus.placed_after(first)) return {};
  std::array<std::byte, wire::kOptionSize> option;
  block.stus.missing_from(first, block.granted_stus(tiles)).encode(option.data());
  return option;
}

// Sends the CTS of `block` for its missing part. False: no credit.
bool Recovery::ask_again(Vc& vc, InboundBlock& block, Time now) {
  if (!vc.credit.available()) return false;
  auto cts = block.cts;
  cts.f_offset = block.first_missing(vc.inbound.tiles());
  use_.common.answer(vc, vc.header_for(cts), missing_of(block, vc.inbound.tiles()));
  use_.departures.leaves(vc, NodeDepartures::kGrantClock);
  use_.common.counters.add(Counter::kCtsRepeated);
  use_.states.spend(vc, now);
  vc.inbound.account().lost(now, OpenBlocks::told_path(block, vc.inbound.tiles()));
  OpenBlocks::repeated(block, now);
  return true;
}

}  // namespace stp
