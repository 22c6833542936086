// SPDX-License-Identifier: BSD-3-Clause
// Write and Read: the receiving side, which decides what is sent when.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/message_number.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {
namespace {

constexpr std::size_t kMaxWaiting = 1024;   // offers without a receive; further offers are refused
constexpr std::size_t kMaxFinished = 4096;  // I_ids kept, so that a late RTS starts nothing

}  // namespace

using wire::Op;
namespace flag = wire::flag;

int Sequencer::post_receive(Context context, const Landing& landing) {
  if (impl_->ended != 0) return impl_->ended;
  impl_->receives.emplace_back(context, landing);
  impl_->match_receives(impl_->clock);
  return 0;
}

void Sequencer::Impl::on_offer(const ReceivedEntry& entry, Time now) {
  const auto rts = wire::decode_as<wire::RequestToSend>(entry.header);
  if (known_offer(rts.i_id)) return;
  const WaitingOffer offer{rts.i_id,  new_id(),      load_msn(entry),
                           rts.t_len, rts.max_block, rts.cts_req};
  if (rts.rtr_i_id != wire::kNoId) {  // the answer to a read of ours
    const auto read = asked.find(rts.rtr_i_id);
    if (read == asked.end() || read->second.region || read->second.length != offer.length)
      return refuse(Op::kRequestAnswer, offer.i_id);
    const auto found = read->second;
    asked.erase(read);
    return begin(offer, Completion::Kind::kRead, found.context, found.landing, now);
  }
  enqueue(offer);
  match_receives(now);
  const auto waits = std::any_of(waiting.begin(), waiting.end(),
                                 [&](const WaitingOffer& w) { return w.i_id == offer.i_id; });
  if (waits) tell_seen(offer.i_id, offer.r_id);
}

// Sends no CTS yet: that follows when there is room.
void Sequencer::Impl::tell_seen(std::uint32_t i_id, std::uint32_t r_id) {
  answer(header(wire::RequestAnswer{.i_id = i_id, .r_id = r_id}));
}

// Offers wait in the order of their messages, whatever the order of their RTS. Offers of a peer
// that does not number them wait in order of arrival.
// protocol: 9.21
void Sequencer::Impl::enqueue(const WaitingOffer& offer) {
  const auto ahead = offer.msn == 0 ? 0 : offer.msn - expected_msn;
  if (waiting.size() == kMaxWaiting || ahead >= kMaxAhead)
    return refuse(Op::kRequestAnswer, offer.i_id);
  const auto place = std::find_if(waiting.begin(), waiting.end(), [&](const WaitingOffer& w) {
    return offer.msn != 0 && w.msn != 0 && static_cast<std::int32_t>(w.msn - offer.msn) > 0;
  });
  waiting.insert(place, offer);
  STP_ASSERT(waiting.size() <= kMaxWaiting, "so many offers wait at most");
}

// The sender has ended the write `msn`: no longer waits for its RTS.
// protocol: 9.22
void Sequencer::Impl::skip(std::uint32_t msn, Time now) {
  if (msn - expected_msn >= kMaxAhead) return;  // already handled
  skipped.insert(msn);
  if (skipped.contains(expected_msn)) {
    --expected_msn;
    next_message();
  }
  match_receives(now);
}

void Sequencer::Impl::next_message() {
  do {
    ++expected_msn;
  } while (skipped.erase(expected_msn) > 0);
  STP_ASSERT(skipped.size() < kMaxAhead, "only messages ahead of the expected one are skipped");
}

// Answers a repeated RTS again, and starts nothing.
// protocol: 9.24, 10.2
bool Sequencer::Impl::known_offer(std::uint32_t i_id) {
  if (over(i_id, Op::kRequestAnswer)) return true;
  for (const auto& [r_id, in] : incoming) {
    if (in.i_id != i_id) continue;
    // Its CTS is on its way, or the Node will repeat it if no data arrives.
    tell_seen(in.i_id, r_id);
    return true;
  }
  for (const auto& offer : waiting) {
    if (offer.i_id != i_id) continue;
    tell_seen(offer.i_id, offer.r_id);
    return true;
  }
  return false;
}

void Sequencer::Impl::refuse(Op answer, std::uint32_t i_id) {
  // protocol: 9.17
  auto no = header(wire::RequestAnswer{.i_id = i_id}, flag::kReject);
  no.op_flags = wire::op_flags(answer, flag::kReject);  // an MRA's I_id is there, too
  this->answer(no);
}

// A request of the peer that was handled before. Repeats a refusal, which may have been lost.
bool Sequencer::Impl::over(std::uint32_t i_id, Op answer) {
  const auto found = finished.find(i_id);
  if (found == finished.end()) return false;
  if (found->second) refuse(answer, i_id);
  return true;
}

// Matches offers and posted receives in order. Refuses an offer longer than its receive.
// protocol: 9.23
void Sequencer::Impl::match_receives(Time now) {
  STP_ASSERT(!skipped.contains(expected_msn), "the message that is expected is not skipped");
  for (pass_stale(); !waiting.empty() && !receives.empty(); pass_stale()) {
    const auto offer = waiting.front();
    const auto ahead = static_cast<std::int32_t>(offer.msn - expected_msn);
    if (offer.msn != 0 && ahead > 0) return;  // an earlier one is on its way
    waiting.pop_front();
    if (offer.msn != 0) next_message();
    const auto [context, landing] = receives.front();
    if (offer.length > landing.length) {
      refuse(Op::kRequestAnswer, offer.i_id);
      remember_finished(offer.i_id, true);
      continue;
    }
    receives.pop_front();
    begin(offer, Completion::Kind::kReceive, context, landing, now);
  }
}

std::uint32_t Sequencer::expected_message() const {
  return impl_->expected_msn;
}

void Sequencer::pass_message() {
  impl_->next_message();
  impl_->match_receives(impl_->clock);
}

// Skips offers that were taken back before they arrived.
void Sequencer::Impl::pass_stale() {
  while (!waiting.empty() && waiting.front().msn != 0 &&
         static_cast<std::int32_t>(waiting.front().msn - expected_msn) < 0) {
    remember_finished(waiting.front().i_id);
    waiting.pop_front();
  }
}

std::optional<Offer> Sequencer::waiting() {
  impl_->pass_stale();
  if (impl_->waiting.empty() || !impl_->receives.empty()) return std::nullopt;
  const auto& first = impl_->waiting.front();
  if (first.msn != 0 && first.msn != impl_->expected_msn) return std::nullopt;
  return Offer{first.length, first.msn};
}

void Sequencer::refuse_waiting() {
  if (!waiting()) return;
  const auto offer = impl_->waiting.front();
  impl_->waiting.pop_front();
  if (offer.msn != 0) impl_->next_message();
  impl_->refuse(Op::kRequestAnswer, offer.i_id);
  impl_->remember_finished(offer.i_id, true);
}

// protocol: 9.4
unsigned Sequencer::Impl::choose_blocksize(std::uint64_t length, unsigned max_block) const {
  const auto stu = config.receive_stu_log2;
  const auto whole = static_cast<unsigned>(std::bit_width(length > 1 ? length - 1 : 1));
  const auto lossy = stu + loss.max_block_stus_log2(stu);
  return std::max(wire::kMinBlocksize, std::min({config.max_block, max_block, whole, lossy,
                                                 stu + wire::kMaxStusOfBlockLog2}));
}

void Sequencer::Impl::begin(const WaitingOffer& offer, Completion::Kind kind, Context context,
                            const Landing& landing, Time now) {
  STP_ASSERT(!incoming.contains(offer.r_id), "a Transfer begins once");
  STP_ASSERT(offer.length <= landing.length, "what begins fits where it lands");
  auto& in = incoming[offer.r_id];
  in.state.must(InboundEvent::kMatched);
  in.kind = kind;
  in.context = context;
  in.landing = landing;
  in.length = offer.length;
  in.i_id = offer.i_id;
  in.r_id = offer.r_id;
  in.msn = offer.msn;
  in.blocksize = choose_blocksize(offer.length, offer.max_block);
  // protocol: 9.3, 9.25
  in.window = std::clamp(offer.cts_wanted, 1U, config.cts_window);
  in.progress = now;
  due_at(now + kProgressPatience);
  grant(in);
}

void Sequencer::Impl::grant(Incoming& in) {
  while (in.next < in.block_count() && in.open.size() < in.window) {
    in.open.insert(in.next);
    send_grant(in, in.next++);
  }
  STP_ASSERT(in.open.size() <= in.window && in.next <= in.block_count(),
             "no more Blocks are granted than the window and the Transfer hold");
}

Address Sequencer::Impl::place_of(const Incoming& in, std::uint32_t b_num) const {
  return Address::from_linear(
      in.landing.at.linear(config.local_bufsize) + (std::uint64_t{b_num} << in.blocksize),
      config.local_bufsize);
}

void Sequencer::Impl::send_grant(const Incoming& in, std::uint32_t b_num) {
  const auto at = place_of(in, b_num);
  SendEntry entry{};
  entry.header = header(wire::ClearToSend{.blocksize = static_cast<std::uint16_t>(in.blocksize),
                                          .r_mx = in.landing.mx,
                                          .r_bufx = at.bufx,
                                          .r_offset = at.offset,
                                          .b_num = b_num,
                                          .i_id = in.i_id,
                                          .r_id = in.r_id});
  // Never exceeds the landing, whatever a later RTS says.
  entry.limited = 1;
  entry.length = static_cast<std::uint32_t>(std::min(
      in.length - (std::uint64_t{b_num} << in.blocksize), std::uint64_t{1} << in.blocksize));
  request(entry);
}

// Handles the header of a complete Block, or of a Get's answer that arrived after the Get was
// cancelled. The ids of such an answer are the peer's and may equal those of a Block of ours; its
// place does not.
void Sequencer::Impl::on_block(const ReceivedEntry& entry, Time now) {
  const auto data = wire::decode_as<wire::Data>(entry.header);
  const auto found = incoming.find(data.r_id);
  if (found == incoming.end()) {
    on_put(entry);
    return;
  }
  auto& in = found->second;
  if (data.r_mx != in.landing.mx || Address{data.r_bufx, data.r_offset} != place_of(in, data.b_num))
    return;
  if (in.open.erase(data.b_num) == 0) return;
  // protocol: 9.26
  in.tag = data.opaque;
  in.progress = now;
  loss.observe(std::uint64_t{data.stu_num} + 1, repeats);
  grant(in);
  if (in.open.empty()) {
    in.state.must(InboundEvent::kLastBlock);
    STP_ASSERT(in.next == in.block_count(), "the last Block has been granted");
    finish(in, 0);
  }
}

// Handles the header of a Put Block that was sent to wake its receiver.
void Sequencer::Impl::on_put(const ReceivedEntry& entry) {
  const auto data = wire::decode_as<wire::Data>(entry.header);
  for (const auto& [i_id, given] : opened) {
    const auto mra = wire::decode_as<wire::MemoryRegionAvailable>(given.header);
    if (mra.r_id != data.r_id) continue;
    complete(Completion::Kind::kArrived, 0, 0, entry.length);
    auto& c = completions.back();
    c.request = mra.r_id;
    c.offset = Address{data.r_bufx, data.r_offset}.linear(config.local_bufsize) -
               Address{mra.r_bufx, mra.r_offset}.linear(config.local_bufsize);
    return;
  }
}

void Sequencer::Impl::finish(Incoming& in, int status) {
  STP_ASSERT(status != 0 || in.state == InboundState::kDone, "what is complete has its last Block");
  Completion c{};
  c.kind = in.kind;
  c.context = in.context;
  c.status = status;
  c.length = status == 0 ? in.length : 0;
  c.tag = in.tag;
  c.message = in.msn;
  if (status == 0)
    completions.push_back(c);
  else  // the END or EA that voids its grants is on its way to the Node
    complete_once_taken(c);
  remember_finished(in.i_id);
  incoming.erase(in.r_id);
}

void Sequencer::Impl::remember_finished(std::uint32_t i_id, bool refused) {
  const auto [known, added] = finished.emplace(i_id, refused);
  known->second = refused;
  STP_ASSERT(finished.size() == finished_order.size() + (added ? 1U : 0U),
             "each Transfer that is remembered has its place in the order");
  if (!added) return;
  finished_order.push_back(i_id);
  if (finished_order.size() <= kMaxFinished) return;
  finished.erase(finished_order.front());
  finished_order.pop_front();
}

void Sequencer::Impl::expire_incoming(Time now) {
  for (auto next = incoming.begin(); next != incoming.end();) {
    auto& in = (next++)->second;
    if (now - in.progress < kProgressPatience) {
      due_at(in.progress + kProgressPatience);
      continue;
    }
    in.state.must(InboundEvent::kSilence);
    end(in.i_id, in.r_id, std::nullopt);
    finish(in, -ETIMEDOUT);
  }
}

}  // namespace stp
