// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/soft_port.h"

#include "stp/base/assert.h"

namespace stp::port {

unsigned SoftPort::turn(Engine& engine, Time now) {
  look(now);
  unsigned moved = loopback_.deliver(engine, now);
  if (seat_) moved += seat_->deliver(engine, now);
  if (now >= engine.next_deadline()) engine.expire(now);
  for (std::size_t burst = 0; burst < kTurnBursts; ++burst) {
    if (seat_ && !seat_->may_send(now)) break;
    const unsigned sent = send_burst(engine, now);
    if (sent == 0) break;
    moved += sent;
  }
  return moved;
}

unsigned SoftPort::send_burst(Engine& engine, Time now) {
  std::array<TxFrame, kBurst> frames;
  for (std::size_t i = 0; i < kBurst; ++i) frames[i].head = heads_.at(i);
  const std::size_t count = engine.transmit(frames, now);
  STP_ASSERT(count <= frames.size(), "no more frames are taken than were offered a head");
  for (const TxFrame& frame : std::span(frames).first(count)) {
    const bool kept = send(frame);
    if (!kept && frame.token.region != kNoneId) engine.transmitted(std::span(&frame.token, 1));
  }
  if (seat_) seat_->publish();
  return static_cast<unsigned>(count);
}

// True: the frame refers to user memory until it is received here.
bool SoftPort::send(const TxFrame& frame) {
  const Bytes head(frame.head, frame.head_length);
  const bool ours = destination(head) == info_.mac;
  // A frame that leaves is traced where it leaves.
  if (tap_ != nullptr && (ours || !seat_)) tap_->frame(head, frame.attached, true);
  if (!ours) {
    send_away(frame);
    return false;
  }
  const unsigned owner = seat_ ? seat_->owner_of(head) : info_.shard;
  if (owner != info_.shard) {
    seat_->give(owner, head, frame.attached, true);
    return false;
  }
  loopback_.push(frame);
  return true;
}

}  // namespace stp::port
