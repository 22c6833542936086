// SPDX-License-Identifier: BSD-3-Clause
// Write, and the answer to a Read: the sending side.
#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/message_number.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

using wire::Op;
namespace flag = wire::flag;

int Sequencer::write(Context context, Address source, std::uint64_t length,
                     const WriteOptions& options) {
  return impl_->offer(Completion::Kind::kWrite, wire::kNoId, context, source, length, options);
}

// protocol: 9.9
int Sequencer::serve_read(std::uint32_t request, Context context, Address source,
                          std::uint64_t length) {
  const auto found = impl_->peer_requests.find(request);
  if (found == impl_->peer_requests.end()) return -ECANCELED;
  if (found->second.region || length != found->second.length) return -EINVAL;
  const auto answers = found->second.i_id;
  impl_->peer_requests.erase(found);
  return impl_->offer(Completion::Kind::kServe, answers, context, source, length, {});
}

int Sequencer::Impl::offer(Completion::Kind kind, std::uint32_t answers, Context context,
                           Address source, std::uint64_t length, const WriteOptions& options) {
  if (ended != 0) return ended;
  const auto i_id = new_id();
  auto& out = outbound[i_id];
  out.kind = kind;
  out.answers = answers;
  out.context = context;
  out.source = source;
  out.length = length;
  out.options = options;
  out.i_id = i_id;
  if (kind == Completion::Kind::kWrite) out.msn = next_msn++;
  out.begun = out.stalled_since = clock;
  out.retry.start(clock, interval(), out.patience());
  due_at(out.retry.deadline());
  send_offer(out);
  return 0;
}

void Sequencer::Impl::send_offer(Outbound& out) {
  STP_ASSERT(out.state != OutboundState::kSending, "what has been granted is not offered again");
  request(header(wire::RequestToSend{
      .cts_req = static_cast<std::uint16_t>(config.cts_window),
      .max_block = static_cast<std::uint16_t>(
          std::min(config.max_block, config.send_stu_log2 + wire::kMaxStusOfBlockLog2)),
      .t_len = out.length,
      .rtr_i_id = out.answers,
      .i_id = out.i_id,
  }));
  if (out.msn != 0) store_msn(outbox.back().entry, out.msn);
  out.queued = last_number;
}

// RA: seen or refused. Answers an RTS or an RTR.
void Sequencer::Impl::on_answer(const wire::RequestAnswer& ra, bool refused, Time now) {
  if (const auto found = asked.find(ra.i_id); found != asked.end() && !found->second.region) {
    if (refused) {
      complete(Completion::Kind::kRead, found->second.context, -ECONNREFUSED);
      asked.erase(found);
    } else {
      found->second.retry.start(now, kSecond, kUserPatience);
    }
    return;
  }
  const auto found = outbound.find(ra.i_id);
  if (found == outbound.end()) return;
  auto& out = found->second;
  if (!out.state.advance(refused ? OutboundEvent::kRefused : OutboundEvent::kSeen)) return;
  if (out.state == OutboundState::kFailed) {
    complete(out, -ECONNREFUSED);
    outbound.erase(found);
    return;
  }
  if (out.state == OutboundState::kSeen) {
    if (const auto measured = out.retry.measured(now, departures.before(out.queued)))
      round_trip.sample(measured);
    out.r_id = ra.r_id;
    // From here on the receiver decides: it sends a CTS when it has room. The RTS is repeated from
    // time to time only to check that the receiver still knows it.
    out.retry.start(now, kSecond, kUserPatience);
    due_at(out.retry.deadline());
  }
}

// protocol: 9.2
void Sequencer::Impl::on_grant(const wire::ClearToSend& cts, Time now) {
  const auto found = outbound.find(cts.i_id);
  if (found == outbound.end()) return;  // finished: its END or its last RSR said so
  auto& out = found->second;
  const bool first = out.state != OutboundState::kSending;
  if (!first && (cts.r_id != out.r_id || cts.blocksize != out.blocksize)) return;
  if (cts.blocksize > config.send_stu_log2 + wire::kMaxStusOfBlockLog2) return;
  if (first) {
    out.blocksize = cts.blocksize;
    out.r_id = cts.r_id;
    if (out.state == OutboundState::kOffered)
      if (const auto measured = out.retry.measured(now, departures.before(out.queued)))
        round_trip.sample(measured);
  }
  if (cts.b_num >= out.block_count() || cts.b_num < out.b_seq) return;
  if (!out.state.advance(OutboundEvent::kGranted)) return;
  const bool repeated = cts.b_num < out.granted;
  out.granted = std::max(out.granted, cts.b_num + 1);
  STP_ASSERT(out.granted <= out.block_count(), "no Block is granted that the Transfer has not");
  if (repeated) {
    out.retry.answered(now);
  } else {
    out.stalled_since = now;
    out.retry.start(now, interval(), out.patience());
  }
  due_at(out.retry.deadline());
  send_block(out, cts, repeated);
}

// Sends the Block that a CTS permits, from the STU that holds the first missing byte.
void Sequencer::Impl::send_block(Outbound& out, const wire::ClearToSend& cts, bool repeated) {
  const auto at = std::uint64_t{cts.b_num} << out.blocksize;
  STP_ASSERT(at <= out.length, "a Block begins within its Transfer");
  const auto length = std::min(out.length - at, std::uint64_t{1} << out.blocksize);
  if (cts.f_offset > length) return;
  const auto to = Address{cts.r_bufx, cts.r_offset}.linear(config.remote_bufsize);
  const auto tile = (to + cts.f_offset) >> config.send_stu_log2;
  const auto number = tile - (to >> config.send_stu_log2);
  const auto skip = number == 0 ? 0 : (tile << config.send_stu_log2) - to;
  STP_ASSERT(skip <= length, "no more is left out than the Block has");
  const auto start = Address::from_linear(to + skip, config.remote_bufsize);
  wire::Data data{.r_mx = cts.r_mx,
                  .r_bufx = start.bufx,
                  .r_offset = start.offset,
                  .b_num = cts.b_num,
                  .r_id = out.r_id,
                  .opaque = out.options.tag};
  if (repeated && is_leaving(data)) return;
  data.sync = next_sync++;
  SendEntry entry{};
  const auto wanted = out.options.flags & (flag::kInterrupt | flag::kOrder);
  entry.header = header(data, static_cast<std::uint16_t>(flag::kSendState | wanted));
  const auto from = Address::from_linear(out.source.linear(config.local_bufsize) + at + skip,
                                         config.local_bufsize);
  entry.bufx = from.bufx;
  entry.offset = from.offset;
  entry.length = static_cast<std::uint32_t>(length - skip);
  request(entry);
  out.queued = last_number;
}

// Whether `data`, or a request that contains it, has not left yet: it also answers the repeated
// CTS.
// protocol: 10.15
bool Sequencer::Impl::is_leaving(const wire::Data& data) const {
  const auto from = Address{data.r_bufx, data.r_offset}.linear(config.remote_bufsize);
  const auto holds = [&](Op op, std::uint32_t d_id, std::uint32_t b_num, const Address& at) {
    return op == Op::kData && d_id == data.r_id && b_num == data.b_num &&
           at.linear(config.remote_bufsize) <= from;
  };
  for (const auto& handed : in_ring)
    if (holds(handed.op, handed.d_id, handed.b_num, handed.at)) return true;
  return std::any_of(outbox.begin(), outbox.end(), [&](const Outgoing& queued) {
    const auto& h = queued.entry.header;
    return holds(h.op(), h.d_id, h.b_num, {h.bufx, h.offset});
  });
}

// RSR about a Transfer of ours, or about a region that we put into.
void Sequencer::Impl::on_state(const wire::RequestStateResponse& rsr, bool refused, Time now) {
  if (rsr.i_id == wire::kNoId) return on_slots(rsr, now);
  if (const auto found = outbound.find(rsr.i_id); found != outbound.end())
    return outbound_state(found->second, rsr, refused, now);
  auto* const stream = find_puts(rsr.r_id);
  if (stream != nullptr && stream->i_id == rsr.i_id) put_state(*stream, rsr, refused, now);
}

// protocol: 10.16
void Sequencer::Impl::outbound_state(Outbound& out, const wire::RequestStateResponse& rsr,
                                     bool refused, Time now) {
  if (out.state != OutboundState::kSending || rsr.r_id != out.r_id) return;
  const auto i_id = out.i_id;
  if (refused) {  // the receiver no longer knows the Transfer
    out.state.must(OutboundEvent::kEnded);
    forget_requests(out.r_id);
    complete(out, -ECANCELED);
    outbound.erase(i_id);
    return;
  }
  if (rsr.b_seq > out.b_seq) {
    out.b_seq = rsr.b_seq;
    out.stalled_since = now;
    out.retry.start(now, interval(), out.patience());
  } else {
    out.retry.answered(now);
  }
  due_at(out.retry.deadline());
  // protocol: 9.7
  if (out.b_seq < out.block_count()) return;
  out.state.must(OutboundEvent::kComplete);
  complete(out, 0);
  outbound.erase(i_id);
}

// Returns the Sync of the RS; the answer repeats it.
std::uint32_t Sequencer::Impl::ask_state(std::uint32_t r_id, std::uint32_t i_id,
                                         std::uint32_t b_num) {
  const wire::RequestState rs{.sync = next_sync++, .b_num = b_num, .r_id = r_id, .i_id = i_id};
  request(header(rs));
  return rs.sync;
}

// protocol: 10.11, 10.17
void Sequencer::Impl::expire_outbound(Time now) {
  for (auto next = outbound.begin(); next != outbound.end();) {
    auto& out = next->second;
    const auto here = next++;
    bool gave_up = false;
    // After an RA the RTS asks whether it is still known.
    const bool offered = out.state == OutboundState::kOffered;
    const auto who = offered ? Answerer::kUser : Answerer::kQuestion;
    const bool repeat = again(out.retry, out.queued, who, now, gave_up);
    if (gave_up || out.is_over(now)) {
      out.state.must(OutboundEvent::kSilence);
      forget_requests(out.r_id);
      Completion c{};
      c.kind = out.kind;
      c.context = out.context;
      c.status = -ETIMEDOUT;
      c.message = out.msn;
      end(out.r_id, out.i_id, c, out.msn);
      outbound.erase(here);
    } else if (repeat && out.state == OutboundState::kSending) {
      // protocol: 10.7
      ask_state(out.r_id, out.i_id, wire::kNoId);
      out.queued = last_number;
    } else if (repeat) {
      send_offer(out);
    }
  }
}

}  // namespace stp
