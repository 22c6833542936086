// SPDX-License-Identifier: BSD-3-Clause
// Routes the peer's headers to the mechanisms.
#include "stp/transfer/message_number.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

using wire::Op;

void Sequencer::Impl::dispatch(const ReceivedEntry& entry) {
  const auto& h = entry.header;
  const bool refused = h.has(wire::flag::kReject);
  switch (h.op()) {
    case Op::kRequestToSend:
      return on_offer(entry);
    case Op::kRequestAnswer:
      return on_answer(wire::decode_as<wire::RequestAnswer>(h), refused);
    case Op::kClearToSend:
      return writes_out.on_grant(wire::decode_as<wire::ClearToSend>(h));
    case Op::kData:
      return on_data(entry);
    case Op::kRequestStateResponse:
      return on_state(wire::decode_as<wire::RequestStateResponse>(h), refused);
    case Op::kRequestToReceive:
      return asks_in.on_read_request(wire::decode_as<wire::RequestToReceive>(h));
    case Op::kRequestMemoryRegion:
      return asks_in.on_region_request(entry);
    case Op::kMemoryRegionAvailable:
      return asks_out.on_region(entry);
    case Op::kGet:
      if (refused) gets.on_refused(wire::decode_as<wire::Get>(h));
      return;
    case Op::kEnd:
      return on_end(entry);
    case Op::kEndAck:
      return endings.on_end_ack(wire::decode_as<wire::EndAck>(h));
    case Op::kNoOperation:
      return on_notice(wire::decode_as<wire::NoOperation>(h));
    case Op::kRequestConnection:
    case Op::kConnectionAnswer:
    case Op::kRequestDisconnect:
    case Op::kDisconnectAnswer:
    case Op::kDisconnectComplete:
    case Op::kRequestState:
      return;  // handled by the Node
  }
}

void Sequencer::Impl::on_offer(const ReceivedEntry& entry) {
  const auto rts = wire::decode_as<wire::RequestToSend>(entry.header);
  // A repeated RTS is answered again and starts nothing.
  // protocol: 9.24, 10.2
  if (finished.is_over(rts.i_id, Op::kRequestAnswer) || writes_in.repeats(rts.i_id) ||
      offers.repeats(rts.i_id))
    return;
  const OfferedWrite offer{.i_id = rts.i_id,
                           .r_id = ids.next(),
                           .msn = load_msn(entry),
                           .length = rts.t_len,
                           .max_block = rts.max_block,
                           .cts_wanted = rts.cts_req};
  if (rts.rtr_i_id == wire::kNoId) return offers.add(offer);
  const auto read = asks_out.take_read(rts.rtr_i_id, offer.length);
  if (!read) return outbox.refuse(Op::kRequestAnswer, offer.i_id);
  writes_in.begin(offer, Completion::Kind::kRead, read->context, read->landing);
}

// Answers an RTR or an RTS.
void Sequencer::Impl::on_answer(const wire::RequestAnswer& ra, bool refused) {
  if (!asks_out.on_answer(ra, refused)) writes_out.on_answer(ra, refused);
}

void Sequencer::Impl::on_data(const ReceivedEntry& entry) {
  if (gets.on_answer(wire::decode_as<wire::Data>(entry.header))) return;
  if (!writes_in.on_block(entry)) asks_in.on_put(entry);
}

// About Slots, about a Transfer of ours, or about a region that we put into.
void Sequencer::Impl::on_state(const wire::RequestStateResponse& rsr, bool refused) {
  if (rsr.i_id == wire::kNoId) return repeats.on_slots(rsr);
  if (!writes_out.on_state(rsr, refused)) puts.on_state(rsr, refused);
}

// protocol: 9.18, 9.20
void Sequencer::Impl::on_end(const ReceivedEntry& entry) {
  const auto end = wire::decode_as<wire::End>(entry.header);
  const auto region = asks_in.find(end.i_id);
  auto r_id = end.r_id;
  if (r_id == wire::kNoId)  // the peer does not know our id of what it ends
    r_id = region ? *region : writes_in.find(end.i_id).value_or(wire::kNoId);
  const auto ea = wire::to_header(wire::EndAck{.i_id = end.i_id, .r_id = r_id});
  const bool known = writes_out.knows(end.r_id, end.i_id) || writes_in.knows(r_id, end.i_id) ||
                     (region && *region == r_id);
  if (known) {
    outbox.add(ea);  // its memory is returned once the Node has taken this
  } else {
    outbox.answer(ea);
    finished.remember(end.i_id);  // its request may arrive after this END
  }
  writes_in.on_end(end) || offers.take_back(end.i_id) || writes_out.on_end(end) ||
      asks_in.on_end(end) || puts.on_end(end);
  if (const auto msn = load_msn(entry); msn != 0) offers.skip(msn);
}

void Sequencer::Impl::on_notice(const wire::NoOperation& nop) {
  if (nop.sync == kNoticeMark) completions.add(Completion::Kind::kNotice, 0, 0).tag = nop.b_num;
}

}  // namespace stp
