// SPDX-License-Identifier: BSD-3-Clause
// The frames of a Host: from the cable to its Node and back, and to and from the other Nodes of its
// machine.
#include "tools/sim/host.h"

namespace stp::sim {
namespace {

constexpr std::size_t kDescriptors = 1024;  // of the receive ring; further frames are lost
constexpr Time kFullRing = kMillisecond;    // after it a sender looks again whether there is room

}  // namespace

void Host::receive(const Frame& frame) {
  if (!up_) return run_.trace.fault(run_.now(), Fault::kHostDown, frame);
  if (!paused_) return take(frame);
  if (unread_.size() == kDescriptors) return run_.trace.fault(run_.now(), Fault::kOverflow, frame);
  unread_.push_back(frame);
}

void Host::take(const Frame& frame) {
  run_.trace.received(run_.now(), frame);
  if (liar_) liar_->overhear(frame);
  if (hand_over(frame)) return;
  const Bytes bytes(frame);
  node_->receive({&bytes, 1}, run_.now());
  look_again();
  poke();
}

// True: the frame belongs to another Node of the machine.
bool Host::hand_over(const Frame& frame) {
  if (!seat_) return false;
  const auto owner = seat_->owner_of(frame);
  if (owner == seat_->shard()) return false;
  if (!seat_->give(owner, frame, {}, false)) run_.trace.fault(run_.now(), Fault::kOverflow, frame);
  seat_->publish();
  place_.wake_others();
  return true;
}

// Takes what other Nodes have handed over.
void Host::take_over() {
  if (!seat_) return;
  port::NodeEngine engine(*node_);
  if (seat_->deliver(engine, run_.now()) == 0) return;
  look_again();
  poke();
  place_.wake_others();
}

// Gives the wire one frame at a time.
void Host::send() {
  if (place_.one_queue && place_.node != port::Crossing::kOwner) return give_to_first();
  if (uplink_->busy()) return;
  if (liar_) {
    if (auto old = liar_->replay(); !old.empty()) {
      run_.trace.fault(run_.now(), Fault::kLie, old);
      const auto size = old.size();
      return uplink_->send(place_.node, size, [old = std::move(old)] { return old; });
    }
  }
  others_turn_ = !others_turn_;
  if (others_turn_ && send_for_another()) return;
  if (!send_own() && !others_turn_) send_for_another();
}

// The wire reads the frame, and the user's memory with it, until it asks for the content.
bool Host::send_own() {
  TxFrame frame{.head = head_.data(), .attached = {}, .token = {}};
  if (node_->transmit({&frame, 1}, run_.now()) == 0) return false;
  const auto size = frame.head_length + frame.attached.size();
  head_.resize(frame.head_length);
  const auto content = [this, token = frame.token, attached = frame.attached, life = life_] {
    if (life != life_) return Frame{};
    Frame whole(std::move(head_));
    whole.insert(whole.end(), attached.begin(), attached.end());
    head_ = Frame(node_->frame_room());
    node_->transmitted(token);
    return sent(std::move(whole));
  };
  uplink_->send(place_.node, size, content);
  return true;
}

// A frame of a Node that has no queue of its own.
bool Host::send_for_another() {
  if (!place_.one_queue) return false;
  Frame frame;
  seat_->take_for_link(1, [&](Bytes bytes) { frame.assign(bytes.begin(), bytes.end()); });
  if (frame.empty()) return false;
  place_.wake_others();
  const auto size = frame.size();
  uplink_->send(place_.node, size, [this, frame = std::move(frame), life = life_] {
    return life == life_ ? sent(frame) : Frame{};
  });
  return true;
}

// Gives a burst to the first Node, which has the queue.
void Host::give_to_first() {
  for (std::size_t given = 0; given < port::kBurst; ++given) {
    if (!seat_->may_send(run_.now())) {
      run_.clock.after(kFullRing, [this] { poke(); });
      break;
    }
    TxFrame frame{.head = head_.data(), .attached = {}, .token = {}};
    if (node_->transmit({&frame, 1}, run_.now()) == 0) break;
    const auto head = Bytes(head_).first(frame.head_length);
    if (!seat_->give_to_link(head, frame.attached))
      run_.trace.fault(run_.now(), Fault::kOverflow, head);
    node_->transmitted(frame.token);
    seat_->publish();
    place_.wake_others();
    poke();  // there may be more
  }
}

Frame Host::sent(Frame frame) {
  if (liar_ && liar_->mutate(frame)) run_.trace.fault(run_.now(), Fault::kLie, frame);
  run_.trace.sent(run_.now(), frame);
  return frame;
}

}  // namespace stp::sim
