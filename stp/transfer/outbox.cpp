// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/outbox.h"

#include <algorithm>
#include <utility>

#include "stp/transfer/clock.h"

namespace stp {
namespace {

using wire::Op;
namespace flag = wire::flag;

}  // namespace

void Outbox::Outgoing::copy_to(SendEntry& out) const {
  write_entry<SendEntry>(*this, out);
  out.destination_mac = 0;
  out.reserved[0] = 0;
}

SendEntry& Outbox::add() {
  STP_ASSERT(ended_ == 0, "nothing is requested once the connection has ended");
  auto& out = queue_.place();
  out = {};
  out.mark(++last_number_, Outgoing::kDecided);
  return out;
}

void Outbox::add(const SendEntry& entry) {
  STP_ASSERT(ended_ == 0, "nothing is requested once the connection has ended");
  auto& out = queue_.place();
  static_cast<SendEntry&>(out) = entry;
  out.mark(++last_number_, Outgoing::kDecided);
}

SendEntry& Outbox::queue_put(std::uint32_t r_id, bool short_one, bool asks) {
  if (queue_.empty() && short_one && asks && drafts_ != 0 && draft_->header.d_id == r_id)
    draft_is_covered_ = true;
  auto& out = queue_.place();
  clear(out);
  out.mark(++last_number_, !short_one ? Outgoing::kDecided
                           : asks     ? Outgoing::kSomebodyWaits
                                      : Outgoing::kNobodyWaits);
  return out;
}

void Outbox::answer(const SendEntry& entry) {
  if (crowded()) return;
  for (const auto& queued : queue_)
    if (queued.header == entry.header) return;
  add(entry);
}

void Outbox::answer(const wire::Header& header) {
  SendEntry entry{};
  entry.header = header;
  answer(entry);
}

void Outbox::tell_seen(std::uint32_t i_id, std::uint32_t r_id) {
  answer(wire::to_header(wire::RequestAnswer{.i_id = i_id, .r_id = r_id}));
}

void Outbox::refuse(Op answer, std::uint32_t i_id) {
  // protocol: 9.17
  auto no = wire::to_header(wire::RequestAnswer{.i_id = i_id});
  no.op_flags = wire::op_flags(answer, flag::kReject);  // an MRA's I_id is there, too
  this->answer(no);
}

std::uint32_t Outbox::ask_state(std::uint32_t r_id, std::uint32_t i_id, std::uint32_t b_num) {
  const wire::RequestState rs{.sync = next_sync(), .b_num = b_num, .r_id = r_id, .i_id = i_id};
  add(wire::to_header(rs));
  return rs.sync;
}

void Outbox::add_notice(const wire::Header& header) {
  if (auto* const waits = waiting(last_notice_)) {
    waits->header = header;
    return;
  }
  add(header);
  last_notice_ = last_number_;
}

SendEntry* Outbox::waiting(std::uint64_t number) {
  const auto found = std::ranges::lower_bound(queue_, number, {}, &Outgoing::number);
  return found != queue_.end() && found->number() == number ? &*found : nullptr;
}

void Outbox::forget_data(std::uint32_t r_id) {
  queue_drafts();
  erase_if(queue_, [&](const Outgoing& out) {
    return out.header.op() == Op::kData && out.header.d_id == r_id;
  });
}

bool Outbox::ask_with_last(std::uint32_t r_id) {
  if (queue_.empty()) {
    if (drafts_ == 0 || draft_->header.d_id != r_id) return false;
    return draft_is_wanted_ = true;
  }
  auto& last = queue_.back();
  if (last.header.op() != Op::kData || last.header.d_id != r_id) return false;
  if (last.is_decided())
    last.header.op_flags |= flag::kSendState;
  else
    last.reserved[0] = Outgoing::kSomebodyWaits;
  return true;
}

// protocol: 10.15
bool Outbox::is_leaving(const wire::Data& data, std::uint64_t length,
                        unsigned remote_bufsize) const {
  const auto from = Address{data.r_bufx, data.r_offset}.linear(remote_bufsize);
  const auto holds = [&](Op op, std::uint32_t d_id, std::uint32_t b_num, const Address& where,
                         std::uint32_t size) {
    const auto at = where.linear(remote_bufsize);
    return op == Op::kData && d_id == data.r_id && b_num == data.b_num && at <= from &&
           from + length <= at + size;
  };
  for (const auto& handed : in_ring_)
    if (holds(handed.op, handed.d_id, handed.b_num, handed.at, handed.length)) return true;
  return std::any_of(queue_.begin(), queue_.end(), [&](const Outgoing& queued) {
    const auto& h = queued.header;
    return holds(h.op(), h.d_id, h.b_num, {h.bufx, h.offset}, queued.length);
  });
}

bool Outbox::transmit(SendEntry& out) {
  STP_ASSERT(ring_ == nullptr, "who has drafts sends them through their ring");
  if (queue_.empty()) return false;
  hand_out(out);
  return true;
}

bool Outbox::transmit(UserChannel& to) {
  STP_ASSERT(ring_ == nullptr || ring_ == &to, "requests leave through one ring");
  bool any = drafts_ != 0 && send_drafts();
  for (; !queue_.empty(); any = true) {
    auto* const place = to.next();
    if (place == nullptr) break;
    hand_out(*place);
    to.send_next();
  }
  return any;
}

// The Node may read them from now on.
inline bool Outbox::send_drafts() {
  settle_draft(std::exchange(draft_is_covered_, false));
  await_node();
  add_run(drafts());
  ring_->send_drafts(std::exchange(drafts_, 0));
  return true;
}

// They wait before all that is queued, instead.
void Outbox::queue_drafts() {
  if (drafts_ == 0) return;
  settle_draft(std::exchange(draft_is_covered_, false));
  RingQueue<Outgoing> all;
  const auto first = drafts().first();
  for (std::uint32_t i = 0; i < drafts_; ++i) {
    auto& out = all.place();
    write_entry<SendEntry>(ring_->drafted(i), out);
    out.mark(first + i, Outgoing::kDecided);
  }
  for (const auto& queued : queue_) all.place() = queued;
  queue_ = std::move(all);
  drafts_ = 0;
}

// Requests are about to be handed out.
inline void Outbox::await_node() {
  if (waits_for_node()) return;
  taken_at_ = clock_.now();
  clock_.due_at(Alarm::kOutbox, taken_at_ + clock_.progress_patience());
}

// The first request of the queue leaves.
inline void Outbox::hand_out(SendEntry& out) {
  const auto& next = queue_.front();
  STP_ASSERT(in_ring_.empty() || in_ring_.back().number < next.number(),
             "requests are handed out in their order");
  STP_ASSERT(puts_.count == 0 || puts_.number < next.number(),
             "requests are handed out in their order");
  await_node();
  next.copy_to(out);
  if (!next.is_decided()) {
    hand_out_put(next, out);
  } else {
    end_run();
    const auto& h = next.header;
    auto& handed = in_ring_.place();
    any_in_ring_ = true;
    handed.number = next.number();
    handed.count = 1;
    handed.op = h.op();
    handed.d_id = h.d_id;
    handed.b_num = h.b_num;
    handed.at = {h.bufx, h.offset};
    handed.length = next.length;
  }
  queue_.pop_front();
}

// It is a short Put, which asks for an answer only if it must.
// protocol: 9.27
inline void Outbox::hand_out_put(const Outgoing& put, SendEntry& out) {
  const auto later = [&] {
    if (queue_.size() == 1) return false;
    const auto& next = queue_[1];
    return next.is_wanted() && next.header.d_id == put.header.d_id;
  };
  const bool wanted = put.is_wanted();
  if (asking_.at_departure(wanted, wanted && later())) out.header.op_flags |= flag::kSendState;
  add_run({put.number(), 1});
}

// Short Puts are handed out.
inline void Outbox::add_run(const Run& run) {
  STP_ASSERT(puts_.number < run.first(), "requests are handed out in their order");
  if (puts_.number + 1 != run.first()) end_run();
  puts_.number = run.number;
  puts_.count += run.count;
}

// What is handed out next is none of these Puts.
void Outbox::end_run() {
  if (puts_.count == 0) return;
  auto& handed = in_ring_.place();
  any_in_ring_ = true;
  static_cast<Run&>(handed) = puts_;
  handed.op = {};
  puts_.count = 0;
}

// The Node has taken up to `count` of these. Returns how many it has.
inline std::uint32_t Outbox::take(Run& run, std::uint32_t count) {
  const auto taken = std::min(count, run.count);
  STP_ASSERT(taken_number_ < run.first(), "requests are taken in order");
  taken_number_ = run.number - (run.count - taken);
  run.count -= taken;
  taken_count_ += taken;
  return taken;
}

bool Outbox::taken(std::uint32_t count) {
  auto left = count - taken_count_;
  if (left == 0 || !waits_for_node()) return false;
  while (left != 0 && any_in_ring_) {
    auto& first = in_ring_.front();
    left -= take(first, left);
    if (first.count != 0) break;
    in_ring_.pop_front();
    any_in_ring_ = !in_ring_.empty();
  }
  if (left != 0 && puts_.count != 0) take(puts_, left);
  if (!waits_for_node()) clock_.stop(Alarm::kOutbox);
  taken_at_ = clock_.now();
  departures_.add(taken_number_, taken_at_);
  return true;
}

// protocol: 10.18
void Outbox::expire() {
  if (!waits_for_node()) return;
  stuck_ = clock_.now() - taken_at_ >= clock_.progress_patience();
  if (!stuck_) clock_.due_at(Alarm::kOutbox, taken_at_ + clock_.progress_patience());
}

void Outbox::close(int error) {
  drafts_ = 0;
  queue_.clear();
  ended_ = error;
}

}  // namespace stp
