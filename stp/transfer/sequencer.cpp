// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/sequencer.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

using wire::Op;
namespace flag = wire::flag;

namespace {

// The Sync of a NOP that carries a notice.
// protocol: 9.31
constexpr std::uint32_t kNoticeMark = 0x53544d4e;  // "STMN"

// Without option payload its place is neither read nor copied.
void copy(const SendEntry& from, SendEntry& to) {
  if (from.payload_length != 0) {
    to = from;
    return;
  }
  constexpr auto kTail = offsetof(SendEntry, destination_mac);
  to.header = from.header;
  std::memcpy(reinterpret_cast<std::byte*>(&to) + kTail,
              reinterpret_cast<const std::byte*>(&from) + kTail, sizeof(SendEntry) - kTail);
}

}  // namespace

Sequencer::Sequencer(const SequencerConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Sequencer::~Sequencer() = default;

void Sequencer::Impl::request(const wire::Header& h) {
  request().header = h;
}

void Sequencer::Impl::request(const SendEntry& entry) {
  request() = entry;
}

SendEntry& Sequencer::Impl::request() {
  STP_ASSERT(ended == 0, "nothing is requested once the connection has ended");
  auto& out = outbox.place();
  out.entry = {};
  out.number = ++last_number;
  out.may_not_ask = false;
  return out.entry;
}

SendEntry& Sequencer::Impl::bare_request() {
  STP_ASSERT(ended == 0, "nothing is requested once the connection has ended");
  auto& out = outbox.place();
  out.number = ++last_number;
  out.may_not_ask = false;
  auto& entry = out.entry;
  entry.destination_mac = 0;
  entry.payload_length = entry.limited = entry.reserved[0] = entry.reserved[1] = 0;
  return entry;
}

void Sequencer::Impl::complete(Completion::Kind kind, Context context, int status,
                               std::uint64_t length) {
  auto& c = completions.place();
  c = {};
  c.kind = kind;
  c.context = context;
  c.status = status;
  c.length = length;
}

void Sequencer::Impl::complete(const Outbound& out, int status) {
  complete(out.kind, out.context, status, status == 0 ? out.length : 0);
  completions.back().message = out.msn;
}

// Queues one answer per request, however often the peer repeats it, so that no queue grows. The
// peer asks again for an answer that is dropped here.
void Sequencer::Impl::answer(const SendEntry& entry) {
  constexpr std::size_t kMaxQueued = 1024;
  if (outbox.size() >= kMaxQueued) return;
  for (const auto& queued : outbox)
    if (queued.entry.header == entry.header) return;
  request(entry);
}

void Sequencer::Impl::answer(const wire::Header& h) {
  SendEntry entry{};
  entry.header = h;
  answer(entry);
}

void Sequencer::Impl::complete_once_taken(const Completion& completion) {
  STP_ASSERT(held.empty() || held.back().first <= last_number, "completions are held in order");
  held.push_back({last_number, completion});
  give_held();
}

void Sequencer::Impl::give_held() {
  auto next = ~std::uint64_t{0};  // the first request not taken by the Node
  if (!outbox.empty()) next = outbox.front().number;
  if (!in_ring.empty()) next = in_ring.front().number;
  for (; !held.empty() && held.front().first < next; held.pop_front())
    completions.push_back(held.front().second);
}

// Ids count up, so that no id is reused while a duplicate of an old frame may exist.
// protocol: 8.13, 9.1
std::uint32_t Sequencer::Impl::new_id() {
  const auto id = next_id++;
  if (next_id == wire::kNoId) next_id = 1;
  return id;
}

// Takes back the unsent requests of the Transfer or region with the peer's id `d_id`.
void Sequencer::Impl::forget_requests(std::uint32_t d_id) {
  erase_if(outbox, [&](const Outgoing& out) {
    return out.entry.header.op() == Op::kData && out.entry.header.d_id == d_id;
  });
}

void Sequencer::Impl::dispatch(const ReceivedEntry& entry, Time now) {
  const auto& h = entry.header;
  const bool refused = h.has(wire::flag::kReject);
  switch (h.op()) {
    case Op::kRequestToSend:
      return on_offer(entry, now);
    case Op::kRequestAnswer:
      return on_answer(wire::decode_as<wire::RequestAnswer>(h), refused, now);
    case Op::kClearToSend:
      return on_grant(wire::decode_as<wire::ClearToSend>(h), now);
    case Op::kData:
      if (!on_get_answer(wire::decode_as<wire::Data>(h), now)) on_block(entry, now);
      return;
    case Op::kRequestStateResponse:
      return on_state(wire::decode_as<wire::RequestStateResponse>(h), refused, now);
    case Op::kRequestToReceive:
      return on_read_request(wire::decode_as<wire::RequestToReceive>(h));
    case Op::kRequestMemoryRegion:
      return on_region_request(entry);
    case Op::kMemoryRegionAvailable:
      return on_region(entry);
    case Op::kGet:
      if (refused) on_get_refused(wire::decode_as<wire::Get>(h));
      return;
    case Op::kEnd:
      return on_end(entry, now);
    case Op::kEndAck:
      return on_end_ack(wire::decode_as<wire::EndAck>(h));
    case Op::kNoOperation:
      if (h.sync != kNoticeMark) return;
      complete(Completion::Kind::kNotice, 0, 0);
      completions.back().tag = h.b_num;
      return;
    case Op::kRequestConnection:
    case Op::kConnectionAnswer:
    case Op::kRequestDisconnect:
    case Op::kDisconnectAnswer:
    case Op::kDisconnectComplete:
    case Op::kRequestState:
      return;  // handled by the Node
  }
}

// Never goes back: a negative round trip would count as an endless one.
Time Sequencer::Impl::tell_time(Time now) {
  return clock = std::max(clock, now);
}

void Sequencer::receive(const ReceivedEntry& entry, Time now) {
  const auto present = impl_->tell_time(now);
  if (impl_->ended == 0) impl_->dispatch(entry, present);
}

bool Sequencer::transmit(SendEntry& out, Time now) {
  auto& self = *impl_;
  self.tell_time(now);
  if (self.outbox.empty()) return false;
  const auto& next = self.outbox.front();
  copy(next.entry, out);
  if (next.may_not_ask) self.leave_asking(out);
  const auto& h = next.entry.header;
  STP_ASSERT(self.in_ring.empty() || self.in_ring.back().number < next.number,
             "requests are handed out in their order");
  if (self.in_ring.empty()) {
    self.taken_at = self.clock;
    self.due_at(self.taken_at + kProgressPatience);
  }
  auto& handed = self.in_ring.place();
  handed.number = next.number;
  handed.op = h.op();
  handed.d_id = h.d_id;
  handed.b_num = h.b_num;
  handed.at = {h.bufx, h.offset};
  self.outbox.pop_front();
  return true;
}

void Sequencer::taken(std::uint32_t count, Time now) {
  auto& self = *impl_;
  self.tell_time(now);
  if (self.taken_count == count || self.in_ring.empty()) return self.give_held();
  for (; self.taken_count != count && !self.in_ring.empty(); ++self.taken_count) {
    STP_ASSERT(self.taken_number < self.in_ring.front().number, "requests are taken in order");
    self.taken_number = self.in_ring.front().number;
    self.in_ring.pop_front();
  }
  self.taken_at = self.clock;
  self.departures.add(self.taken_number, self.clock);
  self.give_held();
  if (self.may_wait_for_nothing && self.in_ring.empty()) {
    self.may_wait_for_nothing = false;
    if (!self.waits_for_time()) self.deadline = kNever;
  }
}

// Whether any clock runs. A deadline left by a finished operation would cause a check of all of
// this that finds nothing.
bool Sequencer::Impl::waits_for_time() const {
  if (!outbound.empty() || !incoming.empty() || !asked.empty() || !gets.empty() ||
      !endings.empty() || !in_ring.empty() || question.running() || in_doubt)
    return true;
  return std::any_of(puts.begin(), puts.end(), [](const auto& put) { return put.second.sent > 0; });
}

bool Sequencer::is_stuck() const {
  return impl_->stuck;
}

Time Sequencer::next_deadline() const {
  return impl_->deadline;
}

void Sequencer::expire(Time now) {
  auto& self = *impl_;
  now = self.tell_time(now);
  if (self.ended != 0 || now < self.deadline) return;
  self.deadline = kNever;
  self.in_doubt = false;
  self.expire_outbound(now);
  self.expire_incoming(now);
  self.expire_asked(now);
  self.expire_puts(now);
  self.expire_gets(now);
  self.expire_endings(now);
  self.in_doubt ? self.ask_whether_seen(now) : self.no_doubt();
  // protocol: 10.18
  if (self.in_ring.empty()) return;
  self.stuck = now - self.taken_at >= kProgressPatience;
  if (!self.stuck) self.due_at(self.taken_at + kProgressPatience);
}

void Sequencer::observe_loss(std::uint32_t cts_repeated) {
  impl_->repeats = cts_repeated;
}

bool Sequencer::next_completion(Completion& out) {
  if (impl_->completions.empty()) return false;
  out = impl_->completions.front();
  impl_->completions.pop_front();
  return true;
}

bool Sequencer::has_completion() const {
  return !impl_->completions.empty();
}

bool Sequencer::has_offers() const {
  return !impl_->waiting.empty();
}

bool Sequencer::has_request() const {
  return !impl_->outbox.empty();
}

bool Sequencer::waits_for_node() const {
  return !impl_->outbox.empty() || !impl_->held.empty();
}

int Sequencer::no_operation() {
  if (impl_->ended != 0) return impl_->ended;
  impl_->request(Impl::header(wire::NoOperation{}));
  return 0;
}

int Sequencer::notify(std::uint32_t word) {
  if (impl_->ended != 0) return impl_->ended;
  impl_->request(Impl::header(wire::NoOperation{.sync = kNoticeMark, .b_num = word}));
  return 0;
}

std::uint32_t Sequencer::take_message() {
  return impl_->next_msn++;
}

void Sequencer::fail(int error) {
  auto& self = *impl_;
  if (self.ended != 0) return;
  self.ended = error;
  self.deadline = kNever;
  self.outbox.clear();
  for (const auto& [id, out] : self.outbound) self.complete(out, error);
  for (const auto& [id, in] : self.incoming) self.complete(in.kind, in.context, error);
  for (const auto& [context, landing] : self.receives)
    self.complete(Completion::Kind::kReceive, context, error);
  for (const auto& [id, asked] : self.asked)
    self.complete(asked.region ? Completion::Kind::kRegion : Completion::Kind::kRead, asked.context,
                  error);
  for (const auto& [id, stream] : self.puts)
    for (const auto& block : stream.blocks)
      if (block.last) self.completions.push_back(Impl::completion_of(block, error));
  for (const auto& piece : self.gets)
    if (piece.last) self.complete(piece.kind, piece.context, error);
  for (const auto& [number, completion] : self.held) self.completions.push_back(completion);
  for (auto& [id, ending] : self.endings)
    if (ending.completion) self.completions.push_back(*ending.completion);
  self.outbound.clear();
  self.incoming.clear();
  self.receives.clear();
  self.waiting.clear();
  self.asked.clear();
  self.peer_requests.clear();
  self.puts.clear();
  self.recent_puts = nullptr;
  self.gets.clear();
  self.endings.clear();
  self.held.clear();
  STP_ASSERT(outstanding() == 0, "all that was outstanding completes when the connection ends");
}

std::size_t Sequencer::outstanding() const {
  const auto& self = *impl_;
  std::size_t count = self.outbound.size() + self.incoming.size() + self.receives.size() +
                      self.asked.size() + self.gets.size() + self.held.size();
  for (const auto& [id, stream] : self.puts) count += stream.blocks.size();
  for (const auto& [id, ending] : self.endings) count += ending.completion.has_value();
  return count;
}

}  // namespace stp
