// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/sequencer.h"

#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

Sequencer::Sequencer(const SequencerConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Sequencer::~Sequencer() = default;

// --- operations

int Sequencer::write(Context context, Address source, std::uint64_t length,
                     const WriteOptions& options) {
  if (impl_->ended == 0) impl_->writes_out.write(context, source, length, options);
  return impl_->ended;
}

int Sequencer::post_receive(Context context, const Landing& landing) {
  if (impl_->ended == 0) impl_->offers.post(context, landing);
  return impl_->ended;
}

int Sequencer::read(Context context, const Landing& landing) {
  return impl_->ended != 0 ? impl_->ended : impl_->asks_out.read(context, landing);
}

int Sequencer::serve_read(std::uint32_t request, Context context, Address source,
                          std::uint64_t length) {
  std::uint32_t i_id = 0;
  const auto error = impl_->asks_in.take_read(request, length, i_id);
  if (error == 0) impl_->writes_out.serve(i_id, context, source, length);
  return error;
}

int Sequencer::request_region(Context context, std::uint64_t length, std::uint32_t window,
                              std::uint32_t name) {
  if (impl_->ended != 0) return impl_->ended;
  return impl_->asks_out.request_region(context, length, window, name);
}

int Sequencer::serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                            const RegionTerms& terms) {
  return impl_->asks_in.serve_region(request, landing, window, terms);
}

int Sequencer::close_region(std::uint32_t request) {
  return impl_->ended != 0 ? impl_->ended : impl_->asks_in.close_region(request);
}

int Sequencer::refuse(std::uint32_t request) {
  return impl_->asks_in.refuse(request);
}

int Sequencer::put(Context context, const RemoteRegion& region, std::uint64_t offset,
                   Address source, std::uint64_t length, const PutOptions& options) {
  if (impl_->ended != 0) return impl_->ended;
  return impl_->puts.put(context, region, offset, source, length, options);
}

void Sequencer::confirm_puts() {
  if (impl_->ended == 0) impl_->puts.confirm();
}

int Sequencer::get(Context context, const RemoteRegion& region, std::uint64_t offset,
                   const Landing& landing) {
  return impl_->ended != 0 ? impl_->ended : impl_->gets.get(context, region, offset, landing);
}

int Sequencer::fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
                     wire::Function function, std::uint64_t operand, std::uint64_t compare,
                     const Landing& landing) {
  if (impl_->ended != 0) return impl_->ended;
  return impl_->gets.fetch(context, region, offset, function, operand, compare, landing);
}

int Sequencer::end_region(const RemoteRegion& region) {
  return impl_->puts.close(region.r_id);
}

int Sequencer::cancel(Context context) {
  auto& self = *impl_;
  if (self.ended != 0) return self.ended;
  const bool found = self.writes_out.cancel(context) || self.writes_in.cancel(context) ||
                     self.offers.cancel(context) || self.asks_out.cancel(context) ||
                     self.puts.cancel(context) || self.gets.cancel(context);
  return found ? 0 : -ENOENT;
}

int Sequencer::no_operation() {
  if (impl_->ended == 0) impl_->outbox.add(wire::to_header(wire::NoOperation{}));
  return impl_->ended;
}

int Sequencer::notify(std::uint32_t word) {
  const wire::NoOperation notice{.sync = Impl::kNoticeMark, .b_num = word};
  if (impl_->ended == 0) impl_->outbox.add(wire::to_header(notice));
  return impl_->ended;
}

// --- messages

std::uint32_t Sequencer::take_message() {
  return impl_->writes_out.take_message();
}

std::uint32_t Sequencer::expected_message() const {
  return impl_->offers.next_message();
}

void Sequencer::pass_message() {
  impl_->offers.pass_message();
}

bool Sequencer::has_offers() const {
  return !impl_->offers.empty();
}

std::optional<Offer> Sequencer::waiting() {
  return impl_->offers.waiting();
}

void Sequencer::refuse_waiting() {
  impl_->offers.refuse_waiting();
}

std::optional<Offer> Sequencer::waiting_ahead() {
  return impl_->offers.waiting_ahead();
}

void Sequencer::receive_ahead(Context context, const Landing& landing) {
  impl_->offers.receive_ahead(context, landing);
}

// --- headers

void Sequencer::receive(const ReceivedEntry& entry, Time now) {
  impl_->clock.tell(now);
  if (impl_->ended == 0) impl_->dispatch(entry);
}

// --- requests and time

bool Sequencer::transmit(SendEntry& out, Time now) {
  impl_->clock.tell(now);
  return impl_->outbox.transmit(out);
}

void Sequencer::taken(std::uint32_t count, Time now) {
  auto& self = *impl_;
  self.clock.tell(now);
  self.outbox.taken(count);
  self.completions.release();
}

Time Sequencer::next_deadline() const {
  return impl_->clock.deadline();
}

void Sequencer::expire(Time now) {
  auto& self = *impl_;
  now = self.clock.tell(now);
  if (self.ended != 0 || now < self.clock.deadline()) return;
  impl_->expire();
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
  clock.stop(Alarm::kRepeats);
  repeats.begin_round();
  if (due(Alarm::kWritesOut)) writes_out.expire();
  if (due(Alarm::kWritesIn)) writes_in.expire();
  if (due(Alarm::kAsksOut)) asks_out.expire();
  if (due(Alarm::kPuts)) puts.expire();
  if (due(Alarm::kGets)) gets.expire();
  if (due(Alarm::kEndings)) endings.expire();
  repeats.end_round();
  if (due(Alarm::kOutbox)) outbox.expire();
}

bool Sequencer::is_stuck() const {
  return impl_->outbox.is_stuck();
}

void Sequencer::observe_loss(std::uint32_t cts_repeated, unsigned path_block) {
  auto& self = *impl_;
  self.writes_in.observe_loss(cts_repeated, path_block);
  self.writes_out.want(self.writes_in.cts_window(), path_block != 0);
}

void Sequencer::fail(int error) {
  auto& self = *impl_;
  if (self.ended != 0) return;
  self.ended = error;
  self.clock.stop();
  self.outbox.close();
  self.writes_out.fail(error);
  self.writes_in.fail(error);
  self.offers.fail(error);
  self.asks_out.fail(error);
  self.asks_in.fail();
  self.puts.fail(error);
  self.gets.fail(error);
  self.completions.release_all();
  self.endings.fail();
  STP_ASSERT(outstanding() == 0, "all that was outstanding completes when the connection ends");
}

bool Sequencer::next_completion(Completion& out) {
  return impl_->completions.next(out);
}

bool Sequencer::has_completion() const {
  return impl_->completions.has_ready();
}

bool Sequencer::has_request() const {
  return !impl_->outbox.empty();
}

bool Sequencer::waits_for_node() const {
  return !impl_->outbox.empty() || impl_->completions.held() != 0;
}

std::size_t Sequencer::outstanding() const {
  const auto& self = *impl_;
  return self.writes_out.outstanding() + self.writes_in.outstanding() + self.offers.outstanding() +
         self.asks_out.outstanding() + self.puts.outstanding() + self.gets.outstanding() +
         self.completions.held() + self.endings.outstanding();
}

}  // namespace stp
