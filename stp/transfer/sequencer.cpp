// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/sequencer.h"

#include <cerrno>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/transfer/asks.h"
#include "stp/transfer/clock.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/outbox.h"
#include "stp/transfer/puts.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/writes_in.h"
#include "stp/transfer/writes_out.h"

namespace stp {

// The composition of a Sequencer: the mechanisms of this folder, each of which owns its state.
// dispatch() routes the peer's headers to them, the functions of Sequencer the calls of the user.
struct alignas(kCacheLine) Sequencer::Impl {
  // The Sync of a NOP that carries a notice.
  // protocol: 9.31
  static constexpr std::uint32_t kNoticeMark = 0x53544d4e;  // "STMN"

  explicit Impl(const SequencerConfig& sequencer_config)
      : repeats(sequencer_config.remote_slots, clock, outbox), config(sequencer_config) {}

  void dispatch(const ReceivedEntry& entry);
  void expire();
  void on_offer(const ReceivedEntry& entry);
  void on_grant(const ReceivedEntry& entry);
  void on_answer(const wire::RequestAnswer& ra, bool refused);
  void on_data(const ReceivedEntry& entry);
  void on_state(const wire::RequestStateResponse& rsr, bool refused);
  void on_end(const ReceivedEntry& entry);
  void on_notice(const wire::NoOperation& nop);

  // What a Put and its answer need is in seven cache lines: the end of `clock` and the beginning of
  // `repeats`, the beginning of `puts`, from `config` to the middle of `outbox`, and where
  // `landings`, which is aligned so that this is one, says whether anything waits.
  Ids ids;
  alignas(16) Clock clock;  // so what is needed of it begins with a line
  Repeats repeats;
  Puts puts{config, clock, outbox, completions, repeats, endings};
  const SequencerConfig config;
  Completions completions{outbox};
  Outbox outbox{clock};
  alignas(kCacheLine) Landings landings{config, clock, outbox, completions, endings};
  Gets gets{config, clock, outbox, completions, repeats};
  Endings endings{outbox, completions, repeats};
  WritesOut writes{config, clock, ids, outbox, completions, repeats, endings};
  Asks asks{config, clock, ids, outbox, completions, repeats, endings, puts};
};

Sequencer::Sequencer(const SequencerConfig& config)
    : impl_(std::make_unique<Impl>(config)), clock_(impl_->clock) {}
Sequencer::~Sequencer() = default;

void Sequencer::fetch_ahead(unsigned step) const {
  const auto& self = *impl_;
  if (step == 0) {
    fetch_line(&self.repeats);
    fetch_line(&self.puts);
    fetch_lines(&self.config, &self.outbox.departures());
    return fetch_line(&self.landings.offers);
  }
  step == 1 ? self.puts.fetch_ahead() : self.puts.fetch_blocks_ahead();
}

// --- operations

int Sequencer::write(Context context, Address source, std::uint64_t length,
                     const WriteOptions& options) {
  if (impl_->outbox.ended() == 0) impl_->writes.write(context, source, length, options);
  return impl_->outbox.ended();
}

int Sequencer::post_receive(Context context, const Landing& landing) {
  if (impl_->outbox.ended() == 0) impl_->landings.offers.post(context, landing);
  return impl_->outbox.ended();
}

int Sequencer::read(Context context, const Landing& landing) {
  return impl_->outbox.ended() != 0 ? impl_->outbox.ended()
                                    : impl_->asks.out.read(context, landing);
}

int Sequencer::serve_read(std::uint32_t request, Context context, Address source,
                          std::uint64_t length) {
  std::uint32_t i_id = 0;
  const auto error = impl_->asks.in.take_read(request, length, i_id);
  if (error == 0) impl_->writes.serve(i_id, context, source, length);
  return error;
}

int Sequencer::request_region(Context context, std::uint64_t length, std::uint32_t window,
                              std::uint32_t name, std::uint32_t least) {
  if (impl_->outbox.ended() != 0) return impl_->outbox.ended();
  return impl_->asks.out.request_region(context, length, window, name, least);
}

int Sequencer::serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                            const RegionTerms& terms) {
  return impl_->asks.in.serve_region(request, landing, window, terms);
}

int Sequencer::close_region(std::uint32_t request) {
  return impl_->outbox.ended() != 0 ? impl_->outbox.ended() : impl_->asks.in.close_region(request);
}

int Sequencer::refuse(std::uint32_t request) {
  return impl_->asks.in.refuse(request);
}

int Sequencer::put(Context context, const RemoteRegion& region, std::uint64_t offset,
                   Address source, std::uint64_t length, const PutOptions& options) {
  if (impl_->outbox.ended() != 0) return impl_->outbox.ended();
  return impl_->puts.put(context, region, offset, source, length, options);
}

void Sequencer::puts_arrived(const RemoteRegion& region, std::uint32_t b_seq) {
  if (impl_->outbox.ended() == 0) impl_->puts.arrived(region.r_id, b_seq);
}

void Sequencer::confirm_puts() {
  if (impl_->outbox.ended() == 0) impl_->puts.confirm();
}

int Sequencer::get(Context context, const RemoteRegion& region, std::uint64_t offset,
                   const Landing& landing) {
  return impl_->outbox.ended() != 0 ? impl_->outbox.ended()
                                    : impl_->gets.get(context, region, offset, landing);
}

int Sequencer::fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
                     wire::Function function, std::uint64_t operand, std::uint64_t compare,
                     const Landing& landing) {
  if (impl_->outbox.ended() != 0) return impl_->outbox.ended();
  return impl_->gets.fetch(context, region, offset, function, operand, compare, landing);
}

int Sequencer::end_region(const RemoteRegion& region) {
  return impl_->puts.close(region.r_id);
}

int Sequencer::cancel(Context context) {
  auto& self = *impl_;
  if (self.outbox.ended() != 0) return self.outbox.ended();
  const bool found = self.writes.cancel(context) || self.landings.cancel(context) ||
                     self.asks.out.cancel(context) || self.puts.cancel(context) ||
                     self.gets.cancel(context);
  return found ? 0 : -ENOENT;
}

int Sequencer::no_operation() {
  if (impl_->outbox.ended() == 0) impl_->outbox.add(wire::to_header(wire::NoOperation{}));
  return impl_->outbox.ended();
}

// The newest word counts.
int Sequencer::notify(std::uint32_t word) {
  auto& self = *impl_;
  if (self.outbox.ended() != 0) return self.outbox.ended();
  self.outbox.add_notice(
      wire::to_header(wire::NoOperation{.sync = Impl::kNoticeMark, .b_num = word}));
  return 0;
}

// --- messages

std::uint32_t Sequencer::take_message() {
  return impl_->writes.take_message();
}

std::uint32_t Sequencer::expected_message() const {
  return impl_->landings.offers.next_message();
}

void Sequencer::pass_message() {
  impl_->landings.offers.pass_message();
}

bool Sequencer::has_offers() const {
  return !impl_->landings.offers.empty();
}

std::optional<Offer> Sequencer::waiting() {
  return impl_->landings.offers.waiting();
}

void Sequencer::refuse_waiting() {
  impl_->landings.offers.refuse_waiting();
}

std::optional<Offer> Sequencer::waiting_ahead() {
  return impl_->landings.offers.waiting_ahead();
}

void Sequencer::receive_ahead(Context context, const Landing& landing) {
  impl_->landings.offers.receive_ahead(context, landing);
}

// --- headers

void Sequencer::receive(const ReceivedEntry& entry, Time now) {
  impl_->clock.tell(now);
  if (impl_->outbox.ended() == 0) impl_->dispatch(entry);
}

// --- requests and time

bool Sequencer::transmit(SendEntry& out, Time now) {
  impl_->clock.tell(now);
  return impl_->outbox.transmit(out);
}

bool Sequencer::transmit(UserChannel& to, Time now) {
  left(to.taken(), now);
  return impl_->outbox.transmit(to);
}

void Sequencer::taken(std::uint32_t count, Time now) {
  left(count, now);
  auto& self = *impl_;
  if (self.landings.writes.waits_for_node())
    self.landings.writes.ends_left(self.outbox.first_not_taken());
}

void Sequencer::left(std::uint32_t count, Time now) {
  auto& self = *impl_;
  self.clock.tell(now);
  self.outbox.taken(count);
  self.completions.release();
}

void Sequencer::write_to(UserChannel& ring) {
  impl_->outbox.write_to(ring);
}

void Sequencer::expire() {
  if (impl_->outbox.ended() == 0) impl_->expire();
}

// What is in doubt waits for the answer to a question and not for a time, so a round that decides
// it is one for all.
void Sequencer::Impl::expire() {
  const bool all = !repeats.idle();
  const auto due = [this, all](Alarm alarm) {
    const bool is = all || clock.is_due(alarm);
    if (is) clock.stop(alarm);
    return is;
  };
  // Until all have set their alarms again, the clock says that the outbox waits.
  clock.due_at(Alarm::kOutbox, kNever);
  clock.stop(Alarm::kRepeats);
  repeats.begin_round();
  if (due(Alarm::kWritesOut)) writes.expire();
  if (due(Alarm::kWritesIn)) landings.writes.expire();
  if (due(Alarm::kAsksOut)) asks.out.expire();
  if (due(Alarm::kPuts)) puts.expire();
  if (due(Alarm::kGets)) gets.expire();
  if (due(Alarm::kEndings)) endings.expire();
  repeats.end_round();
  clock.stop(Alarm::kOutbox);
  outbox.expire();
}

bool Sequencer::is_stuck() const {
  return impl_->outbox.is_stuck();
}

void Sequencer::be_patient() {
  impl_->clock.be_patient();
}

void Sequencer::observe_path(std::uint32_t cts_repeated, unsigned path_block, std::uint32_t steps) {
  auto& self = *impl_;
  self.landings.writes.observe_path(cts_repeated, path_block, steps);
  self.writes.want(self.landings.writes.cts_window(), path_block != 0);
}

void Sequencer::fail(int error) {
  auto& self = *impl_;
  if (self.outbox.ended() != 0) return;
  self.clock.stop();
  self.outbox.close(error);
  self.writes.fail(error);
  self.landings.fail(error);
  self.asks.fail(error);
  self.puts.fail(error);
  self.gets.fail(error);
  self.completions.release_all();
  self.endings.fail();
  STP_ASSERT(outstanding() == 0, "all that was outstanding completes when the connection ends");
}

bool Sequencer::next_completion(Completion& out) {
  return impl_->completions.next(out);
}

std::size_t Sequencer::next_puts(std::span<PutDone> out) {
  return impl_->completions.next_puts(out);
}

bool Sequencer::has_completion() const {
  return impl_->completions.has_ready();
}

bool Sequencer::has_request() const {
  return !impl_->outbox.empty();
}

bool Sequencer::waits_for_node() const {
  const auto& self = *impl_;
  return !self.outbox.empty() || self.completions.held() != 0 ||
         self.landings.writes.waits_for_node();
}

std::uint64_t Sequencer::requests() const {
  return impl_->outbox.last_number();
}

bool Sequencer::has_left(std::uint64_t requests) const {
  return requests < impl_->outbox.first_not_taken();
}

std::size_t Sequencer::outstanding() const {
  const auto& self = *impl_;
  return self.writes.outstanding() + self.landings.outstanding() + self.asks.out.outstanding() +
         self.puts.outstanding() + self.gets.outstanding() + self.completions.held() +
         self.endings.outstanding();
}

// Routes the peer's headers to the mechanisms.

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
      return on_grant(entry);
    case Op::kData:
      return on_data(entry);
    case Op::kRequestStateResponse:
      return on_state(wire::decode_as<wire::RequestStateResponse>(h), refused);
    case Op::kRequestToReceive:
      return asks.in.on_read_request(wire::decode_as<wire::RequestToReceive>(h));
    case Op::kRequestMemoryRegion:
      return asks.in.on_region_request(entry);
    case Op::kMemoryRegionAvailable:
      return asks.out.on_region(entry);
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
  if (endings.finished().is_over(rts.i_id, Op::kRequestAnswer) || landings.repeats(rts.i_id))
    return;
  const auto abilities = load_abilities(entry);
  const OfferedWrite offer{.i_id = rts.i_id,
                           .r_id = ids.next(),
                           .msn = load_msn(entry),
                           .length = rts.t_len,
                           .max_block = rts.max_block,
                           .cts_wanted = rts.cts_req,
                           .repeats_missing = (abilities & wire::kRepeatsMissing) != 0,
                           .sends_parts = (abilities & wire::kSendsParts) != 0};
  if (rts.rtr_i_id == wire::kNoId) return landings.offers.add(offer);
  const auto read = asks.out.take_read(rts.rtr_i_id, offer.length);
  if (!read) return outbox.refuse(Op::kRequestAnswer, offer.i_id);
  landings.writes.begin(offer, Completion::Kind::kRead, read->context, read->landing);
}

// protocol: 10.23
void Sequencer::Impl::on_grant(const ReceivedEntry& entry) {
  const auto cts = wire::decode_as<wire::ClearToSend>(entry.header);
  if (entry.payload_length != wire::kOptionSize) return writes.on_grant(cts);
  const auto missing = wire::MissingStus::decode(reinterpret_cast<const std::byte*>(entry.payload));
  writes.on_grant(cts, &missing);
}

// Answers an RTR or an RTS.
void Sequencer::Impl::on_answer(const wire::RequestAnswer& ra, bool refused) {
  if (!asks.out.on_answer(ra, refused)) writes.on_answer(ra, refused);
}

void Sequencer::Impl::on_data(const ReceivedEntry& entry) {
  if (gets.on_answer(wire::decode_as<wire::Data>(entry.header))) return;
  if (!landings.writes.on_block(entry)) asks.in.on_put(entry);
}

// About Slots, about a Transfer of ours, or about a region that we put into.
void Sequencer::Impl::on_state(const wire::RequestStateResponse& rsr, bool refused) {
  if (rsr.i_id == wire::kNoId) return repeats.on_slots(rsr);
  if (!puts.on_state(rsr, refused)) writes.on_state(rsr, refused);
}

// protocol: 9.18, 9.20
void Sequencer::Impl::on_end(const ReceivedEntry& entry) {
  const auto end = wire::decode_as<wire::End>(entry.header);
  const auto region = asks.in.find(end.i_id);
  auto r_id = end.r_id;
  if (r_id == wire::kNoId)  // the peer does not know our id of what it ends
    r_id = region ? *region : landings.writes.find(end.i_id).value_or(wire::kNoId);
  const auto ea = wire::to_header(wire::EndAck{.i_id = end.i_id, .r_id = r_id});
  const bool known = writes.knows(end.r_id, end.i_id) || landings.writes.knows(r_id, end.i_id) ||
                     (region && *region == r_id);
  if (known) {
    outbox.add(ea);  // its memory is returned once the Node has taken this
  } else {
    outbox.answer(ea);
    endings.finished().remember(end.i_id);  // its request may arrive after this END
  }
  landings.writes.on_end(end) || landings.offers.take_back(end.i_id) || writes.on_end(end) ||
      asks.in.on_end(end) || puts.on_end(end);
  if (const auto msn = load_msn(entry); msn != 0) landings.offers.skip(msn);
}

void Sequencer::Impl::on_notice(const wire::NoOperation& nop) {
  if (nop.sync == kNoticeMark) completions.add(Completion::Kind::kNotice, 0, 0).tag = nop.b_num;
}

}  // namespace stp
