// SPDX-License-Identifier: BSD-3-Clause
// Receives frames: from bytes to the operation.
#include <algorithm>
#include <cstring>
#include <utility>

#include "stp/node/impl.h"
#include "stp/wire/parse.h"
#include "stp/wire/syntax.h"

namespace stp {

// Fast path for the most common frame: DATA whose head is as its connection expects it. False: use
// the general path.
[[gnu::always_inline]] inline bool Node::Impl::receive_expected(Bytes bytes, Bytes apart,
                                                                Time now) {
  using wire::ExpectedData;
  if (bytes.size() < ExpectedData::kHead || !ExpectedData::may_match(bytes.data())) return false;
  auto* const vc = vcs.at(ExpectedData::d_port(bytes.data()));
  if (vc == nullptr || !vc->expected.matches(bytes.data())) return false;
  const auto stu = apart.empty() ? bytes.subspan(ExpectedData::kHead) : apart;
  const bool open = vc->state == VcState::kOpen && !vc->user_closed;
  if (!open || stu.size() > std::size_t{1} << config.max_stu) return false;
  auto& frame = parsed;
  frame.src = vc->peer_mac;
  frame.header = wire::decode(bytes.data() + wire::kEthernetSize);
  frame.stu = stu;
  frame.append = {};
  vc->heard = now;
  on_data(*vc, frame, now);
  return true;
}

[[gnu::always_inline]] inline void Node::Impl::receive_frame(Bytes bytes, Bytes apart, Time now) {
  work::count("frames received");
  if (receive_expected(bytes, apart, now)) return;
  auto& frame = parsed;
  if (const auto why = wire::parse_inline(bytes, config.max_stu, frame, apart);
      why != DropReason::kNone)
    return drop(why);
  // protocol: 2.10
  if (frame.dst != config.mac) return drop(DropReason::kNotForUs);

  const auto& h = frame.header;
  switch (h.op()) {
    case wire::Op::kRequestConnection:
      counters.add(Counter::kRxControl);
      return on_request_connection(frame, now);
    case wire::Op::kConnectionAnswer:
      counters.add(Counter::kRxControl);
      return on_connection_answer(frame, now);
    case wire::Op::kRequestDisconnect:
      counters.add(Counter::kRxControl);
      return on_request_disconnect(frame, now);
    case wire::Op::kDisconnectAnswer:
    case wire::Op::kDisconnectComplete:
    case wire::Op::kNoOperation:
    case wire::Op::kRequestMemoryRegion:
    case wire::Op::kMemoryRegionAvailable:
    case wire::Op::kGet:
    case wire::Op::kRequestToSend:
    case wire::Op::kRequestAnswer:
    case wire::Op::kRequestToReceive:
    case wire::Op::kClearToSend:
    case wire::Op::kData:
    case wire::Op::kRequestState:
    case wire::Op::kRequestStateResponse:
    case wire::Op::kEnd:
    case wire::Op::kEndAck:
      break;  // of a connection
  }
  auto* const vc = vcs.at(h.d_port);
  // protocol: 5.18
  if (vc == nullptr) return on_unknown_port(frame, now);
  if (vc->local_key != h.d_key) return on_wrong_key(*vc, frame, now);
  // protocol: 11.2
  if (vc->connectionless()) return receive_on_endpoint(*vc, frame, now);
  if (vc->peer_mac != frame.src || vc->peer_port != h.s_port) return drop(DropReason::kBadPeer);
  vc->heard = now;
  if (h.op() == wire::Op::kData && vc->state == VcState::kOpen && !vc->user_closed)
    return on_data(*vc, frame, now);
  receive_on_vc(*vc, frame, now);
}

void Node::receive(std::span<const Bytes> burst, Time now) {
  work::Call const call("Node::receive");
  std::size_t bytes = 0;
  for (const auto& frame : burst) {
    bytes += frame.size();
    impl_->receive_frame(frame, {}, now);
  }
  impl_->count_received(burst.size(), bytes);
  impl_->wake_ups.flush(now);
}

void Node::receive_looped(std::span<const LoopedFrame> burst, Time now) {
  work::Call const call("Node::receive_looped");
  std::size_t bytes = 0;
  impl_->looped = true;
  for (const auto& frame : burst) {
    bytes += frame.head.size() + frame.attached.size();
    impl_->receive_frame(frame.head, frame.attached, now);
  }
  impl_->looped = false;
  impl_->count_received(burst.size(), bytes);
  impl_->wake_ups.flush(now);
}

void Node::Impl::count_received(std::size_t frames, std::size_t bytes) {
  counters.add(Counter::kRxFrames, frames);
  counters.add(Counter::kRxBytes, bytes);
}

// The frame is from the peer: its Port, Key and address are right. It is not DATA of an open
// connection.
void Node::Impl::receive_on_vc(Vc& vc, const wire::Frame& frame, Time now) {
  const auto op = frame.header.op();
  if (op != wire::Op::kData) {
    counters.add(Counter::kRxControl);
    ++vc.traffic.rx_control;
  }
  if (op == wire::Op::kDisconnectAnswer) return on_disconnect_answer(vc, now);
  if (op == wire::Op::kDisconnectComplete) return on_disconnect_complete(vc, now);
  const bool legal = vc.state == VcState::kOpen &&
                     (!vc.user_closed || wire::syntax_of(op).when == wire::When::kDraining);
  if (!legal) return drop(not_legal(vc));
  switch (op) {
    case wire::Op::kRequestState:
      return on_request_state(vc, frame.header);
    case wire::Op::kRequestStateResponse:
      return on_state_response(vc, frame, now);
    case wire::Op::kRequestConnection:
    case wire::Op::kConnectionAnswer:
    case wire::Op::kRequestDisconnect:
    case wire::Op::kDisconnectAnswer:
    case wire::Op::kDisconnectComplete:
    case wire::Op::kNoOperation:
    case wire::Op::kRequestMemoryRegion:
    case wire::Op::kMemoryRegionAvailable:
    case wire::Op::kGet:
    case wire::Op::kRequestToSend:
    case wire::Op::kRequestAnswer:
    case wire::Op::kRequestToReceive:
    case wire::Op::kClearToSend:
    case wire::Op::kData:
    case wire::Op::kEnd:
    case wire::Op::kEndAck:
      return deliver_control(vc, frame);
  }
}

// protocol: 6.8, 6.12
void Node::Impl::deliver_control(Vc& vc, const wire::Frame& frame) {
  const auto& h = frame.header;
  if (h.op() == wire::Op::kGet && !h.has(wire::flag::kReject)) return on_get(vc, frame);
  if (!deliver(vc, frame.src, h, frame.option, NodeChannel::Place::kSlot))
    return drop(DropReason::kSlotOverrun);
  learn_from(vc, h);
  if (h.has(wire::flag::kSendState)) answer_state(vc, h.sync, wire::kNoId, wire::kNoId, 0);
}

// Lets the Node itself learn from an operation that its user gets.
void Node::Impl::learn_from(Vc& vc, const wire::Header& h) {
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
      return tidy_later(vc);
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
void Node::Impl::end_transfer(Vc& vc, const wire::End& end) {
  vc.inbound.requests().ended(end.i_id, end.r_id);
  auto r_id = end.r_id;
  if (r_id == wire::kNoId && !vc.inbound.find_initiated(end.i_id, r_id)) return;
  pacing.drop(vc, r_id);
  vc.inbound.end(r_id);
}

// The reason to drop a frame that is illegal in the connection's state. While a connection ends,
// the peer may have sent it before it knew.
// protocol: 5.17
DropReason Node::Impl::not_legal(const Vc& vc) {
  const bool begins = vc.state == VcState::kConnecting || vc.state == VcState::kAsked;
  const bool ends = !begins && (vc.state != VcState::kOpen || vc.user_closed);
  return ends ? DropReason::kCrossedEnd : DropReason::kBadState;
}

// Puts a header into the user's Schedule Header Queue. False: no room.
bool Node::Impl::deliver(Vc& vc, const MacAddr& from, const wire::Header& header, Bytes payload,
                         NodeChannel::Place place, std::uint64_t length) {
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

// protocol: 3.3
wire::Header Node::Impl::addressed_to(const Vc& vc, wire::Header header) {
  header.d_port = vc.peer_port;
  header.s_port = vc.local_port;
  header.d_key = vc.peer_key;
  return header;
}

void Node::Impl::answer(const MacAddr& dst, const wire::Header& header, bool checksum,
                        const OptionPayload& option) {
  if (!answers.add({dst, header, checksum, option})) counters.add(Counter::kAnswersFull);
}

void Node::Impl::event(Event::Kind kind, std::uint64_t id, std::uint64_t cookie) {
  events.push_back({kind, id, cookie});
}

}  // namespace stp
