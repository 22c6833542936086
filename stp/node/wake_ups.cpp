// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/wake_ups.h"

#include <atomic>
#include <cstring>
#include <utility>

namespace stp {

// Drowsy users are checked soon anyway; only gathering users need news before.
void WakeUps::touch(Vc& vc, bool urgent) {
  vc.wake.has_news_ = true;
  vc.wake.urgent_ |= urgent;
  if (!vc.in<IsTouched>() || (vc.wake.drowsy_ && (urgent || vc.channel.gathered()))) enter(vc);
}

void WakeUps::touch_room(Vc& vc) {
  const bool asleep = vc.channel.seems_asleep();
  vc.wake.urgent_ |= asleep;
  if (!vc.in<IsTouched>() || (vc.wake.drowsy_ && asleep)) enter(vc);
}

void WakeUps::enter(Vc& vc) {
  vc.leave<IsTouched>();
  vc.wake.drowsy_ = false;
  touched_.push_back(vc);
}

void WakeUps::wake(bool all, Time now) {
  // A channel touched again has left drowsy_: it is checked once per touch.
  if (all) {
    drowsy_.append(touched_);
    touched_.append(drowsy_);
  }
  // A user that calls gather() now and checks afterwards sees everything published before.
  if (!touched_.empty()) std::atomic_thread_fence(std::memory_order_seq_cst);
  while (!touched_.empty()) {
    auto& vc = touched_.pop_front();
    work::count("connections touched");
    // News wake no thread and cost no system call: polling users get them at once.
    if (std::exchange(vc.wake.has_news_, false) && vc.channel.gathered())
      events_.push_back({Event::Kind::kNews, vc.id, vc.cookie});
    if (!all && !vc.wake.urgent_) {
      vc.wake.drowsy_ = true;
      drowsy_.push_back(vc);
      continue;
    }
    vc.wake.urgent_ = vc.wake.drowsy_ = false;
    if (vc.channel.needs_wake()) events_.push_back({Event::Kind::kWake, vc.id, vc.cookie});
  }
  if (drowsy_.empty())
    wake_by_ = kNever;
  else if (wake_by_ == kNever)
    wake_by_ = now + kDelay;
}

bool deliver(Vc& vc, WakeUps& wake_ups, const MacAddr& from, const wire::Header& header,
             Bytes payload, NodeChannel::Place place, std::uint64_t length) {
  ReceivedEntry entry{};
  entry.length = static_cast<std::uint32_t>(length);
  entry.header = header;
  entry.source_mac = from.to_u64();
  entry.payload_length = static_cast<std::uint8_t>(payload.size());
  if (!payload.empty()) std::memcpy(entry.payload, payload.data(), payload.size());
  const bool room = vc.channel.deliver(entry, place);
  // No room is urgent too: a user sleeping on a full queue must read.
  wake_ups.touch(vc, !room || header.has(wire::flag::kInterrupt));
  return room;
}

}  // namespace stp
