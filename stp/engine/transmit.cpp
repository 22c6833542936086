// SPDX-License-Identifier: BSD-3-Clause
// Bursts to send: the Node's own answers first, then users' requests, connection by connection.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stp/engine/impl.h"

namespace stp {
namespace {

constexpr std::size_t kTurn = 16;  // frames of one connection before the next has its turn
constexpr std::size_t kMinFrame = wire::kEthernetSize + wire::kMinPayload;

}  // namespace

std::size_t Node::Impl::transmit(std::span<TxFrame> frames, Time now) {
  std::size_t count = 0;
  auto const send_answers = [&] {
    for (; count < frames.size() && answer_count > 0; --answer_count) {
      auto const& a = answers[first_answer];
      counters.add(Counter::kTxControl);
      emit(frames[count++], a.dst, a.header, a.checksum, {}, {}, false);
      first_answer = (first_answer + 1) % kMaxAnswers;
    }
  };
  send_answers();
  while (count < frames.size() && !ready.empty()) {
    auto& vc = *ready.front();
    ready.pop_front();
    vc.in_ready = false;
    auto const room = std::min(frames.size() - count, kTurn);
    auto const sent = send_from(vc, frames.subspan(count, room), now);
    count += sent;
  }
  send_answers();  // what the requests brought about: an RS for Slots, an RD
  return count;
}

// Sends up to frames.size() frames of one connection. It queues itself again when there is more.
std::size_t Node::Impl::send_from(Vc& vc, std::span<TxFrame> frames, Time now) {
  std::size_t count = 0;
  while (count < frames.size()) {
    if (!vc.sending.active && !take_request(vc, now)) return count;
    auto& frame = frames[count++];
    if (vc.sending.entry.header.op() == wire::Op::kData)
      build_stu(vc, frame);
    else
      build_control(vc, frame);
    if (frame.head_length == 0) --count;  // its memory was unmapped meanwhile
  }
  make_ready(vc);
  return count;
}

// Makes the next request of the user's queue the one being sent. False: there is none that can go
// now; whatever will change that queues the connection again.
bool Node::Impl::take_request(Vc& vc, Time now) {
  for (;;) {
    if (vc.state != VcState::kOpen) return false;
    if (!vc.channel.peek(vc.sending.entry)) {
      if (vc.channel.broken()) {
        counters.add(Counter::kRingBroken);
        vc.channel.set_state(ChannelState::kFailed, -EPROTO);
        vc.user_closed = true;
      }
      if (vc.user_closed) begin_closing(vc, now);
      return false;
    }
    auto const& h = vc.sending.entry.header;
    auto const refused = [&](int error) {
      if (error == 0) return false;
      counters.add(Counter::kTxRefused);
      vc.channel.count_refused();
      finish_request(vc);
      return true;
    };
    bool const slot = wire::consumes_slot(h);
    if (slot && !vc.credit.available()) {
      counters.add(Counter::kSlotWaits);
      if (vc.ask_again == kNever) ask_slots(vc, false, now);
      return false;
    }
    if (refused(check_request(vc, vc.sending.entry))) continue;
    vc.sending.active = true;
    vc.sending.done = 0;
    vc.sending.stu_num = h.param;
    if (slot) spend_slot(vc, now);
    if (h.op() == wire::Op::kRequestState || h.has(wire::flag::kSendState)) vc.credit.asked(h.sync);
    return true;
  }
}

void Node::Impl::build_control(Vc& vc, TxFrame& frame) {
  auto const& entry = vc.sending.entry;
  auto h = entry.header;
  h.d_port = vc.peer_port;
  h.s_port = vc.local_port;
  h.d_key = vc.peer_key;
  counters.add(Counter::kTxControl);
  emit(frame, vc.peer_mac, h, vc.endpoint->config.checksum,
       std::as_bytes(std::span(entry.payload, entry.payload_length)), {}, false);
  finish_request(vc);
}

void Node::Impl::build_stu(Vc& vc, TxFrame& frame) {
  auto& sending = vc.sending;
  auto const& entry = sending.entry;
  auto const remaining = entry.length - sending.done;
  auto const at =
      Address{entry.header.bufx, entry.header.offset}.linear(vc.peer_bufsize) + sending.done;
  auto const length = static_cast<std::size_t>(stu_length(at, remaining, vc.send_stu_log2));
  bool const last = length == remaining;

  auto h = header_for(vc, wire::Op::kData, entry.header.op_flags & wire::kFlagsMask);
  h.op_flags = static_cast<std::uint16_t>(h.op_flags & ~(wire::flag::kAppend | wire::flag::kLast));
  if (!last) {  // these speak of the Block: its last STU carries them
    h.op_flags =
        static_cast<std::uint16_t>(h.op_flags & ~(wire::flag::kSendState | wire::flag::kInterrupt));
  } else {
    h.op_flags |= wire::flag::kLast;
    if (entry.payload_length != 0) h.op_flags |= wire::flag::kAppend;
  }
  auto const to = Address::from_linear(at, vc.peer_bufsize);
  h.param = static_cast<std::uint16_t>(sending.stu_num++);
  h.mx = entry.header.mx;
  h.bufx = to.bufx;
  h.offset = to.offset;
  h.sync = entry.header.sync;
  h.b_num = entry.header.b_num;
  h.d_id = entry.header.d_id;
  h.s_id = entry.header.s_id;

  auto const& source = vc.endpoint->transmit;
  auto const from = Address{entry.bufx, entry.offset}.linear(source.bufsize()) + sending.done;
  auto const append =
      last ? std::as_bytes(std::span(entry.payload, entry.payload_length)) : Bytes{};
  RegionId region = kNoneId;
  auto payload = source.run(from, length, region);
  bool const attach = payload.size() == length && length >= config.attach_from && append.empty();
  if (!attach && length != 0) {
    // Copied to where it will stand behind the header, from as many pieces as there are.
    auto* const to_here =
        frame.head + wire::head_size(h, length + append.size(), config.vlan.has_value());
    std::size_t copied = 0;
    for (; copied < length; copied += payload.size()) {
      payload = source.run(from + copied, length - copied, region);
      if (payload.empty()) break;
      std::memcpy(to_here + copied, payload.data(), payload.size());
    }
    if (copied < length) {  // unmapped in the middle of the Block
      counters.add(Counter::kTxRefused);
      vc.channel.count_refused();
      frame.head_length = 0;
      return finish_request(vc);
    }
    payload = {to_here, length};
  }
  emit(frame, vc.peer_mac, h, vc.endpoint->config.checksum, payload, append, attach);
  counters.add(Counter::kTxStus);
  counters.add(Counter::kTxDataBytes, length);
  if (attach) {
    frame.token = {vc.id, region};
    ++vc.attached;
    ++regions.find(region)->attached;
  }
  sending.done += length;
  if (last) finish_request(vc);
}

// The request at the head of the user's queue is done with (sent, or refused).
void Node::Impl::finish_request(Vc& vc) {
  vc.sending.active = false;
  vc.channel.pop();
  if (vc.attached == 0) vc.channel.complete(vc.channel.taken());
  touch(vc);
}

// One frame. `payload` may already stand in the frame, behind where the head will end.
void Node::Impl::emit(TxFrame& frame, const MacAddr& dst, const wire::Header& header, bool checksum,
                      Bytes payload, Bytes append, bool attach) {
  wire::Envelope const envelope{dst, config.mac, config.vlan, checksum};
  std::array const pieces{payload, append};
  auto size = wire::emit_head(envelope, header, pieces, frame.head);
  frame.attached = {};
  frame.token = {};
  if (attach) {
    frame.attached = payload;
  } else {
    for (auto const& piece : pieces) {
      if (!piece.empty() && piece.data() != frame.head + size)
        std::memcpy(frame.head + size, piece.data(), piece.size());
      size += piece.size();
    }
    if (size < kMinFrame) {
      std::memset(frame.head + size, 0, kMinFrame - size);
      size = kMinFrame;
    }
  }
  frame.head_length = size;
  counters.add(Counter::kTxFrames);
  counters.add(Counter::kTxBytes, size + frame.attached.size());
}

void Node::Impl::transmitted(const TxToken& token) {
  if (token.region == kNoneId) return;
  auto& region = *regions.find(token.region);
  if (--region.attached == 0 && region.unmapped) region_gone(region);
  auto* const vc = find_vc(token.vc);
  if (vc == nullptr || --vc->attached > 0) return;
  vc->channel.complete(vc->channel.taken());
  touch(*vc);
}

void Node::Impl::make_ready(Vc& vc) {
  if (vc.in_ready) return;
  vc.in_ready = true;
  ready.push_back(&vc);
}

}  // namespace stp
