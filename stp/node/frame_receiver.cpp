// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/frame_receiver.h"

#include "stp/base/work_meter.h"
#include "stp/node/wake_ups.h"
#include "stp/wire/frame.h"
#include "stp/wire/syntax.h"

namespace stp {

void ConnectionlessPorts::on_wrong_key(const Vc& vc, const wire::Frame& frame, Time now) {
  if (!vc.guard) return use_.common.drop(DropReason::kBadKey);
  const auto sender = KeySender::of(frame.src, frame.header.s_port);
  if (!vc.guard->admits(sender, now)) return use_.common.drop(DropReason::kKeyGuesses);
  vc.guard->wrong(sender, now);
  use_.common.drop(DropReason::kBadKey);
}

void ConnectionlessPorts::receive(Vc& vc, const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  // protocol: 11.12, 11.13
  const auto sender = KeySender::of(frame.src, frame.header.s_port);
  if (!vc.guard->admits(sender, now)) return common.drop(DropReason::kKeyGuesses);
  vc.guard->right(sender);
  common.stations.note(frame.src, now);
  const auto op = frame.header.op();
  if (op != wire::Op::kData) common.counters.add(Counter::kRxControl);
  // protocol: 11.10
  if (vc.user_closed || wire::syntax_of(op).when == wire::When::kByState)
    return common.drop(DropReason::kBadState);
  if (op == wire::Op::kData) return use_.placement.on_unscheduled(vc, frame, now);
  // protocol: 11.5
  if (!deliver(vc, use_.wake_ups, frame.src, frame.header, frame.option, NodeChannel::Place::kSlot))
    common.drop(DropReason::kSlotOverrun);
}

// Fast path for the most common frame: DATA whose head is as its connection expects it. False: use
// the general path.
[[gnu::always_inline]] inline bool FrameReceiver::receive_expected(Bytes bytes, Bytes apart,
                                                                   Time now) {
  using wire::ExpectedData;
  if (bytes.size() < ExpectedData::kHead || !ExpectedData::may_match(bytes.data())) return false;
  auto* const vc = use_.vcs.at(ExpectedData::d_port(bytes.data()));
  if (vc == nullptr || !vc->expected.matches(bytes.data())) return false;
  const auto stu = apart.empty() ? bytes.subspan(ExpectedData::kHead) : apart;
  const bool open = vc->state == VcState::kOpen && !vc->user_closed;
  if (!open || stu.size() > std::size_t{1} << use_.common.config.max_stu) return false;
  auto& frame = parsed_;
  frame.src = vc->peer_mac;
  frame.header = wire::decode(bytes.data() + wire::kEthernetSize);
  frame.stu = stu;
  frame.append = {};
  vc->heard = now;
  use_.placement.on_data(*vc, frame, now);
  return true;
}

[[gnu::always_inline]] inline void FrameReceiver::receive_frame(Bytes bytes, Bytes apart,
                                                                Time now) {
  work::count("frames received");
  if (receive_expected(bytes, apart, now)) return;
  auto& frame = parsed_;
  if (const auto why = wire::parse_inline(bytes, use_.common.config.max_stu, frame, apart);
      why != DropReason::kNone)
    return use_.common.drop(why);
  // protocol: 2.10
  if (frame.dst != use_.common.config.mac) return use_.common.drop(DropReason::kNotForUs);

  const auto& h = frame.header;
  const auto op = h.op();
  if (op == wire::Op::kRequestConnection || op == wire::Op::kConnectionAnswer ||
      op == wire::Op::kRequestDisconnect) {
    // protocol: 13.20
    if (frame.padded && !use_.common.config.padded_requests)
      return use_.common.drop(DropReason::kBadControlLength);
    use_.common.counters.add(Counter::kRxControl);
    if (op == wire::Op::kRequestConnection) return use_.listeners.on_request(frame, now);
    if (op == wire::Op::kConnectionAnswer) return use_.openings.on_answer(frame, now);
    return use_.endings.on_request_disconnect(frame, now);
  }
  // Any other is of a connection.
  auto* const vc = use_.vcs.at(h.d_port);
  // protocol: 5.18
  if (vc == nullptr) {
    if (auto* const made = use_.listeners.on_unknown_port(frame, now))
      receive_on_vc(*made, frame, now);
    return;
  }
  if (vc->local_key != h.d_key) return use_.ports.on_wrong_key(*vc, frame, now);
  // protocol: 11.2
  if (vc->connectionless()) return use_.ports.receive(*vc, frame, now);
  if (vc->peer_mac != frame.src || vc->peer_port != h.s_port)
    return use_.common.drop(DropReason::kBadPeer);
  vc->heard = now;
  if (vc->waits_for_proof) use_.openings.proven(*vc);
  if (op == wire::Op::kData && vc->state == VcState::kOpen && !vc->user_closed)
    return use_.placement.on_data(*vc, frame, now);
  receive_on_vc(*vc, frame, now);
}

void FrameReceiver::receive(std::span<const Bytes> burst, Time now) {
  std::size_t bytes = 0;
  for (const auto& frame : burst) {
    bytes += frame.size();
    receive_frame(frame, {}, now);
  }
  count(burst.size(), bytes);
}

void FrameReceiver::receive_looped(std::span<const LoopedFrame> burst, Time now) {
  use_.common.looped = true;
  receive_apart(burst, now);
  use_.common.looped = false;
}

// What the frames of a burst use of their connections, in two steps: the second one reads what the
// first one has brought.
[[gnu::noinline]] void FrameReceiver::fetch_ahead(std::span<const LoopedFrame> burst) const {
  const auto vc_of = [this](const LoopedFrame& frame) -> const Vc* {
    if (frame.head.size() < wire::ExpectedData::kHead) return nullptr;
    return use_.vcs.at(wire::ExpectedData::d_port(frame.head.data()));
  };
  for (const auto& frame : burst)
    if (const auto* const vc = vc_of(frame); vc != nullptr) vc->fetch_ahead();
  for (const auto& frame : burst) {
    const auto* const vc = vc_of(frame);
    if (vc == nullptr) continue;
    if (wire::ExpectedData::may_match(frame.head.data()))
      vc->inbound.fetch_region_ahead();
    else
      vc->channel.fetch_rings_ahead();
  }
}

void FrameReceiver::receive_apart(std::span<const LoopedFrame> burst, Time now) {
  // Where there are fewer connections, the caches hold what they use anyway.
  constexpr std::size_t kManyConnections = 256;
  if (use_.vcs.count() >= kManyConnections && burst.size() > 1) [[unlikely]]
    fetch_ahead(burst);
  std::size_t bytes = 0;
  for (const auto& frame : burst) {
    bytes += frame.head.size() + frame.attached.size();
    use_.common.marked = frame.marked;
    receive_frame(frame.head, frame.attached, now);
  }
  use_.common.marked = false;
  count(burst.size(), bytes);
}

void FrameReceiver::count(std::size_t frames, std::size_t bytes) {
  use_.common.counters.add(Counter::kRxFrames, frames);
  use_.common.counters.add(Counter::kRxBytes, bytes);
}

// The frame is from the peer: its Port, Key and address are right. It is not DATA of an open
// connection.
void FrameReceiver::receive_on_vc(Vc& vc, const wire::Frame& frame, Time now) {
  const auto op = frame.header.op();
  if (op != wire::Op::kData) {
    use_.common.counters.add(Counter::kRxControl);
    ++vc.traffic.rx_control;
  }
  if (op == wire::Op::kDisconnectAnswer) return use_.endings.on_disconnect_answer(vc, now);
  if (op == wire::Op::kDisconnectComplete) return use_.endings.on_disconnect_complete(vc, now);
  const bool legal = vc.state == VcState::kOpen &&
                     (!vc.user_closed || wire::syntax_of(op).when == wire::When::kDraining);
  if (!legal) return use_.common.drop(vc.illegal());
  if (op == wire::Op::kRequestState) return use_.states.on_request(vc, frame.header);
  if (op == wire::Op::kRequestStateResponse) return use_.states.on_response(vc, frame, now);
  deliver_control(vc, frame);
}

// protocol: 6.8, 6.12
void FrameReceiver::deliver_control(Vc& vc, const wire::Frame& frame) {
  const auto& h = frame.header;
  if (h.op() == wire::Op::kGet && !h.has(wire::flag::kReject)) return use_.gets.on_get(vc, frame);
  if (!deliver(vc, use_.wake_ups, frame.src, h, frame.option, NodeChannel::Place::kSlot))
    return use_.common.drop(DropReason::kSlotOverrun);
  learn_from(vc, h);
  if (h.has(wire::flag::kSendState)) use_.states.answer(vc, h.sync, wire::kNoId, wire::kNoId, 0);
}

// Lets the Node itself learn from an operation that its user gets. Most concern the user alone.
void FrameReceiver::learn_from(Vc& vc, const wire::Header& h) {
  switch (h.op()) {
    case wire::Op::kGet: {  // a refusal
      const auto get = wire::decode_as<wire::Get>(h);
      return vc.inbound.answers().forget(get.r_id, get.g_num);
    }
    case wire::Op::kRequestToSend: {
      const auto rts = wire::decode_as<wire::RequestToSend>(h);
      vc.inbound.requests().forget_ended(rts.i_id);
      return vc.inbound.offered(rts);
    }
    case wire::Op::kRequestMemoryRegion:
      return vc.inbound.requests().forget_ended(wire::decode_as<wire::RequestMemoryRegion>(h).i_id);
    case wire::Op::kClearToSend: {
      const auto cts = wire::decode_as<wire::ClearToSend>(h);
      return vc.permitted.remember(cts.r_id, cts.b_num,
                                   Address{cts.r_bufx, cts.r_offset}.linear(vc.peer_bufsize));
    }
    case wire::Op::kEnd:
      end_transfer(vc, wire::decode_as<wire::End>(h));
      return use_.tidying.later(vc);
    case wire::Op::kRequestConnection:
    case wire::Op::kConnectionAnswer:
    case wire::Op::kRequestDisconnect:
    case wire::Op::kDisconnectAnswer:
    case wire::Op::kDisconnectComplete:
    case wire::Op::kNoOperation:
    case wire::Op::kMemoryRegionAvailable:
    case wire::Op::kRequestAnswer:
    case wire::Op::kRequestToReceive:
    case wire::Op::kData:
    case wire::Op::kRequestState:
    case wire::Op::kRequestStateResponse:
    case wire::Op::kEndAck:
      return;
  }
}

// The peer may not know our id of the Transfer that it ends.
// protocol: 7.12, 9.20
void FrameReceiver::end_transfer(Vc& vc, const wire::End& end) {
  vc.inbound.requests().ended(end.i_id, end.r_id);
  auto r_id = end.r_id;
  if (r_id == wire::kNoId && !vc.inbound.find_initiated(end.i_id, r_id)) return;
  use_.pacing.drop(vc, r_id);
  vc.inbound.end(r_id);
}

}  // namespace stp
