// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/writes_out.h"

#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/ids.h"

namespace stp {

namespace flag = wire::flag;

void WritesOut::write(Context context, Address source, std::uint64_t length,
                      const WriteOptions& options) {
  auto& out = create(Completion::Kind::kWrite, context, source, length);
  out.options = options;
  out.msn = take_message();
  begin(out);
}

// protocol: 9.9
void WritesOut::serve(std::uint32_t i_id, Context context, Address source, std::uint64_t length) {
  auto& out = create(Completion::Kind::kServe, context, source, length);
  out.answers = i_id;
  begin(out);
}

WritesOut::Outbound& WritesOut::create(Completion::Kind kind, Context context, Address source,
                                       std::uint64_t length) {
  const auto i_id = ids_.next();
  auto& out = transfers_[i_id];
  out.kind = kind;
  out.context = context;
  out.source = source;
  out.length = length;
  out.i_id = i_id;
  return out;
}

void WritesOut::begin(Outbound& out) {
  out.begun = out.stalled_since = clock_.now();
  repeats_.start(out.awaited, patience(out));
  send_offer(out);
}

void WritesOut::send_offer(Outbound& out) {
  STP_ASSERT(out.state != OutboundState::kSending, "what has been granted is not offered again");
  auto& entry = outbox_.add();
  entry.header = wire::to_header(wire::RequestToSend{
      .cts_req = static_cast<std::uint16_t>(cts_wanted_),
      .max_block = static_cast<std::uint16_t>(
          std::min(config_.max_block, config_.send_stu_log2 + wire::kMaxStusOfBlockLog2)),
      .t_len = out.length,
      .rtr_i_id = out.answers,
      .i_id = out.i_id,
  });
  if (out.msn != 0) store_msn(entry, out.msn, wire::kRepeatsMissing | wire::kSendsParts);
  out.awaited.number = outbox_.last_number();
}

// RA: seen or refused.
void WritesOut::on_answer(const wire::RequestAnswer& ra, bool refused) {
  const auto found = transfers_.find(ra.i_id);
  if (found == transfers_.end()) return;
  auto& out = found->second;
  if (!out.state.advance(refused ? OutboundEvent::kRefused : OutboundEvent::kSeen)) return;
  if (out.state == OutboundState::kFailed) {
    complete(out, -ECONNREFUSED);
    transfers_.erase(found);
    return;
  }
  if (out.state == OutboundState::kSeen) {
    repeats_.measure(out.awaited);
    out.r_id = ra.r_id;
    // From here on the receiver decides: it sends a CTS when it has room. The RTS is repeated from
    // time to time only to check that the receiver still knows it.
    repeats_.start(out.awaited, kSecond, clock_.user_patience());
  }
}

// A peer may send CTS faster than the Node takes what they permit, above all if it gives no Slots.
// While many requests wait, each Transfer adds another one when its last one has been taken.
// protocol: 10.23
bool WritesOut::may_add(const Outbound& out, bool repeated) const {
  const bool much = repeated ? outbox_.crowded() : outbox_.overfull();
  return !much || (repeated ? out.repeated : out.awaited.number) <= outbox_.taken_number();
}

// protocol: 9.2, 13.19
void WritesOut::on_grant(const wire::ClearToSend& cts, const wire::MissingStus* missing) {
  const auto found = transfers_.find(cts.i_id);
  if (found == transfers_.end()) return;  // finished: its END or its last RSR said so
  auto& out = found->second;
  const bool first = out.state != OutboundState::kSending;
  if (!first && (cts.r_id != out.r_id || cts.blocksize != out.blocksize)) return;
  if (cts.blocksize > config_.send_stu_log2 + wire::kMaxStusOfBlockLog2) return;
  const bool known = cts.b_num < out.granted;
  const bool in_part = missing != nullptr && missing->contains(0);
  const bool next_part = in_part && known && out.is_next_part(cts);
  const bool repeated = known && !next_part;
  if (!may_add(out, repeated) || (next_part && outbox_.crowded())) return;  // as if it were lost
  if (first) {
    out.blocksize = cts.blocksize;
    out.r_id = cts.r_id;
    if (out.state == OutboundState::kOffered) repeats_.measure(out.awaited);
  }
  if (cts.b_num >= out.block_count() || cts.b_num < out.b_seq) return;
  if (!out.state.advance(OutboundEvent::kGranted)) return;
  if (!known) {
    out.granted = cts.b_num + 1;
    out.part_end = 0;
  }
  STP_ASSERT(out.granted <= out.block_count(), "no Block is granted that the Transfer has not");
  if (repeated) {
    repeats_.answered(out.awaited);
  } else {
    progress_ = out.stalled_since = clock_.now();
    repeats_.start(out.awaited, patience(out));
  }
  send_block(out, cts, repeated, missing);
}

// Sends the Block that a CTS permits, from the STU that holds the first missing byte.
void WritesOut::send_block(Outbound& out, const wire::ClearToSend& cts, bool repeated,
                           const wire::MissingStus* missing) {
  const auto at = std::uint64_t{cts.b_num} << out.blocksize;
  STP_ASSERT(at <= out.length, "a Block begins within its Transfer");
  const auto length = std::min(out.length - at, std::uint64_t{1} << out.blocksize);
  if (cts.f_offset > length) return;
  const auto to = Address{cts.r_bufx, cts.r_offset}.linear(config_.remote_bufsize);
  const auto tile = (to + cts.f_offset) >> config_.send_stu_log2;
  const auto number = tile - (to >> config_.send_stu_log2);
  const auto skip = number == 0 ? 0 : (tile << config_.send_stu_log2) - to;
  STP_ASSERT(skip <= length, "no more is left out than the Block has");
  const auto sync = outbox_.next_sync();
  const bool asks = repeated || told_of_all_ || out.asks_about(cts.b_num);
  const BlockToSend block{cts, to, length, sync, repeated, asks};
  const bool in_part = missing != nullptr && (repeated || missing->contains(0));
  const auto end = in_part ? send_missing(out, block, skip, *missing) : length;
  if (!in_part) send_part(out, block, skip, length);
  if (!repeated) out.part_end = end;
}

// Sends what is missing of a Block, and returns its end. The first bit of `missing` stands for the
// STU at `begin`.
// protocol: 10.23
std::uint64_t WritesOut::send_missing(Outbound& out, const BlockToSend& block, std::uint64_t begin,
                                      const wire::MissingStus& missing) {
  // A peer that asks for more than the Node takes makes the queue grow no faster than by one each.
  constexpr unsigned kMostParts = 32;
  const auto most = outbox_.crowded() ? 1 : kMostParts;
  unsigned parts = 0;
  auto end = begin;  // the STUs from `begin` to here are missing
  auto last = begin;
  for (std::uint32_t i = 0; i < wire::MissingStus::kMost && end < block.length; ++i) {
    const auto next = end + stu_length(block.to + end, block.length - end, config_.send_stu_log2);
    if (!missing.contains(i)) {
      if (begin != end) last = end;
      if (begin != end && send_part(out, block, begin, end) && ++parts == most) return last;
      begin = next;
    }
    end = next;
  }
  if (begin == end) return last;
  send_part(out, block, begin, end);
  return end;
}

// False: it has not left yet, and so answers the repeated CTS, too.
bool WritesOut::send_part(Outbound& out, const BlockToSend& block, std::uint64_t begin,
                          std::uint64_t end) {
  const auto start = Address::from_linear(block.to + begin, config_.remote_bufsize);
  const bool to_end = end == block.length;
  const wire::Data data{.r_mx = block.cts.r_mx,
                        .r_bufx = start.bufx,
                        .r_offset = start.offset,
                        .sync = block.sync,
                        .b_num = block.cts.b_num,
                        .r_id = out.r_id,
                        .opaque = out.options.tag};
  if (block.repeated && outbox_.is_leaving(data, end - begin, config_.remote_bufsize)) return false;
  auto& entry = outbox_.add();
  auto flags = out.options.flags & (flag::kInterrupt | flag::kOrder);
  if (block.asks && to_end) flags |= flag::kSendState;
  entry.header = wire::to_header(data, static_cast<std::uint16_t>(flags));
  const auto of_block = std::uint64_t{block.cts.b_num} << out.blocksize;
  const auto from = Address::from_linear(
      out.source.linear(config_.local_bufsize) + of_block + begin, config_.local_bufsize);
  entry.bufx = from.bufx;
  entry.offset = from.offset;
  entry.length = static_cast<std::uint32_t>(end - begin);
  entry.limited = to_end ? 0 : 1;
  // Some ways lose whatever says that it may be marked. protocol: 13.22
  entry.may_be_marked = block.repeated ? 0 : 1;
  out.awaited.number = outbox_.last_number();
  if (block.repeated) out.repeated = outbox_.last_number();
  return true;
}

// protocol: 10.16
bool WritesOut::on_state(const wire::RequestStateResponse& rsr, bool refused) {
  const auto found = transfers_.find(rsr.i_id);
  if (found == transfers_.end()) return false;
  auto& out = found->second;
  if (out.state != OutboundState::kSending || rsr.r_id != out.r_id) return true;
  if (refused) {  // the receiver no longer knows the Transfer
    out.state.must(OutboundEvent::kEnded);
    outbox_.forget_data(out.r_id);
    complete(out, -ECANCELED);
    transfers_.erase(found);
    return true;
  }
  if (rsr.b_seq > out.b_seq) {
    out.b_seq = rsr.b_seq;
    progress_ = out.stalled_since = clock_.now();
    repeats_.start(out.awaited, patience(out));
  } else {
    repeats_.answered(out.awaited);
  }
  // protocol: 9.7
  if (out.b_seq < out.block_count()) return true;
  out.state.must(OutboundEvent::kComplete);
  complete(out, 0);
  transfers_.erase(found);
  return true;
}

bool WritesOut::knows(std::uint32_t i_id, std::uint32_t r_id) const {
  const auto found = transfers_.find(i_id);
  return found != transfers_.end() && found->second.r_id == r_id;
}

// The peer may not know our id of what it ends: then `end` names the RTR that the Transfer answers.
bool WritesOut::on_end(const wire::End& end) {
  const bool unnamed = end.r_id == wire::kNoId;
  for (auto& [i_id, out] : transfers_) {
    const bool named = i_id == end.r_id && (out.r_id == end.i_id || out.r_id == wire::kNoId);
    if (!named && !(unnamed && out.answers == end.i_id)) continue;
    out.state.must(OutboundEvent::kEnded);
    outbox_.forget_data(out.r_id);
    complete(out, -ECANCELED);
    transfers_.erase(i_id);
    return true;
  }
  return false;
}

bool WritesOut::cancel(Context context) {
  const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                  [=](const auto& each) { return each.second.context == context; });
  if (found == transfers_.end()) return false;
  end(found->second, -ECANCELED);
  transfers_.erase(found);
  return true;
}

void WritesOut::complete(const Outbound& out, int status) {
  completions_.add(out.kind, out.context, status, status == 0 ? out.length : 0).message = out.msn;
}

void WritesOut::end(const Outbound& out, int status) {
  outbox_.forget_data(out.r_id);
  Completion c{};
  c.kind = out.kind;
  c.context = out.context;
  c.status = status;
  c.message = out.msn;
  endings_.end(out.r_id, out.i_id, c, out.msn);
}

// protocol: 10.11, 10.17
void WritesOut::expire() {
  using Answerer = Repeats::Answerer;
  using Next = Repeats::Next;
  const auto together = told_of_all_ ? progress_ : 0;
  for (auto next = transfers_.begin(); next != transfers_.end();) {
    auto& out = next->second;
    const auto here = next++;
    // After an RA the RTS asks whether it is still known.
    const bool offered = out.state == OutboundState::kOffered;
    const auto what = repeats_.next(out.awaited, offered ? Answerer::kUser : Answerer::kQuestion);
    if (what == Next::kGiveUp || is_over(out, together)) {
      out.state.must(OutboundEvent::kSilence);
      end(out, -ETIMEDOUT);
      transfers_.erase(here);
    } else if (what == Next::kSend && out.state == OutboundState::kSending) {
      // protocol: 10.7
      outbox_.ask_state(out.r_id, out.i_id, wire::kNoId);
      out.awaited.number = outbox_.last_number();
    } else if (what == Next::kSend) {
      send_offer(out);
    }
  }
}

void WritesOut::fail(int error) {
  for (const auto& [id, out] : transfers_) complete(out, error);
  transfers_.clear();
}

}  // namespace stp
