// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/receives.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stp/base/assert.h"

namespace stp::managed {
namespace {

// The signed distance between two message numbers, which wrap.
std::int32_t distance(std::uint64_t message, std::uint32_t from) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(message) - from);
}

}  // namespace

// ---- receives of the program ----

bool Receives::has_receive() const {
  return reports_.pool() != nullptr ? !reports_.pool()->receives.empty() : !posted_.empty();
}

// Returns false if there is no receive, or no place for its event.
bool Receives::take(std::uint32_t message, PostedReceive& out) {
  auto* const pool = reports_.pool();
  auto& from = pool != nullptr ? pool->receives : posted_;
  if (from.empty() || (pool != nullptr && !reports_.receives().reserve())) return false;
  out = std::move(from.front());
  from.pop_front();
  if (pool != nullptr) out.id = name_of(message);
  starved_at_ = kNever;
  return true;
}

bool Receives::uses(const Memory& memory) const {
  return std::ranges::any_of(matched_, [&](const auto& entry) {
    return !entry.second.done && entry.second.receive.memory.is(memory);
  });
}

std::optional<Context> Receives::find_matched(std::uint64_t context, std::uint64_t before) const {
  for (const auto& [id, matched] : matched_)
    if (!matched.done && !matched.cancelled && matched.receive.context == context && id < before)
      return id;
  return std::nullopt;
}

bool Receives::cancel(std::uint64_t context, std::uint64_t before) {
  const auto found = std::find_if(posted_.begin(), posted_.end(),
                                  [&](const auto& receive) { return receive.context == context; });
  if (found == posted_.end() || found->id >= before) return false;
  const auto receive = std::move(*found);
  posted_.erase(found);
  reports_.receives().push(event(receive, -ECANCELED));
  return true;
}

std::uint64_t Receives::span(const Session* session) const {
  if (reports_.pool() == nullptr || matched_.empty()) return size();
  STP_ASSERT(session != nullptr, "messages arrive on an open connection");
  const auto first = static_cast<std::uint32_t>(matched_.begin()->first);
  const auto last = static_cast<std::uint32_t>(matched_.rbegin()->first);
  const auto turn = session->sequencer.expected_message();
  const auto begin = distance(turn, first) < 0 ? turn : first;
  return last - begin + 1;
}

int Receives::set_watermark(std::uint64_t receives) {
  if (!watermark_ && !reports_.events().reserve()) return -EAGAIN;
  watermark_ = receives;
  check_watermark();
  return 0;
}

void Receives::check_watermark() {
  if (!watermark_ || matched_.size() <= *watermark_) return;
  watermark_.reset();
  auto high = reports_.event(STM_HIGH);
  high.length = matched_.size();
  reports_.events().push(high);
}

// ---- matching ----

Receives::Progress Receives::match(Session& session) {
  Progress progress;
  const bool nothing_came =
      matched_.empty() && !session.eager_in.any() && !session.sequencer.has_offers();
  if (!nothing_came) {
    progress = match_some(session);
    session.eager_in.rest();
  }
  if (progress.breach == Breach::kNone && session.eager_in.should_tell())
    session.eager_in.tell(session.sequencer);
  return progress;
}

Receives::Progress Receives::match_some(Session& session) {
  Progress progress;
  for (bool more = true; more;) {
    const auto arrived = match_arrived(session);
    progress.any |= arrived.any;
    if (arrived.breach != Breach::kNone) return {progress.any, arrived.breach};
    more = false;
    const auto offer = session.arrived() != nullptr ? std::nullopt : session.sequencer.waiting();
    if (offer) progress.breach = match_offer(session, *offer, more);
    if (progress.breach != Breach::kNone) return progress;
    progress.any |= more;
  }
  progress.any |= match_ahead(session);
  check_watermark();
  tell(session);  // a message that was withdrawn may have held up later ones
  return progress;
}

Receives::Progress Receives::match_arrived(Session& session) {
  Progress progress;
  for (const EagerIn::Arrived* next = nullptr; (next = session.arrived()) != nullptr;) {
    bool matched = false;
    progress.breach = match_eager(session, *next, matched);
    if (!matched) break;
    progress.any = true;
  }
  return progress;
}

Receives::Breach Receives::match_eager(Session& session, const EagerIn::Arrived& arrived,
                                       bool& matched) {
  PostedReceive receive;
  const auto head = arrived.head;
  // protocol: 9.41
  if (!session.eager_in.in_turn(arrived)) return Breach::kRing;
  if (!take(head.message, receive)) return Breach::kNone;
  STP_ASSERT(!matched_.contains(receive.id), "a receive takes one message");
  const auto refusal = receive.refusal(head.length);
  if (refusal == 0 && head.length != 0)
    std::memcpy(receive.ptr, session.eager_in.bytes(arrived), head.length);
  session.eager_in.take(arrived);
  session.sequencer.pass_message();
  const Outcome outcome{refusal, head.length, head.message, head.tag};
  if (matched_.empty())  // it is told at once
    reports_.receives().push(conclusion(receive, outcome));
  else
    conclude(session, matched_[receive.id] = {std::move(receive)}, outcome);
  matched = true;
  return Breach::kNone;
}

Receives::Breach Receives::match_offer(Session& session, const Offer& offer, bool& matched) {
  if (offer.message == 0) return Breach::kUnnumbered;
  PostedReceive receive;
  if (!take(offer.message, receive)) return Breach::kNone;
  matched = true;
  const auto id = receive.id;
  STP_ASSERT(!matched_.contains(id), "a receive takes one message");
  auto& entry = matched_[id] = {std::move(receive)};
  if (const auto refusal = entry.receive.refusal(offer.length); refusal != 0) {
    session.sequencer.refuse_waiting();
    conclude(session, entry, {refusal, offer.length, offer.message, 0});
    return Breach::kNone;
  }
  session.sequencer.post_receive(id, session.landing(entry.receive));
  if (session.eager_in.has_untold()) session.eager_in.tell(session.sequencer);
  return Breach::kNone;
}

void Receives::on_received(const Session& session, const Completion& c) {
  const auto found = matched_.find(c.context);
  if (found == matched_.end()) return;
  const auto& receive = found->second.receive;
  if (c.status == 0 && receive.memory)
    receive.memory->store(receive.ptr, std::min<std::size_t>(c.length, receive.length));
  conclude(session, found->second, {c.status, c.length, c.message, c.tag});
}

// ---- matching ahead of the turn, from a pool ----

// Extends a message number, which wraps, to a name that does not wrap. So receives from a pool are
// ordered by their messages, not by the time at which they were taken.
Context Receives::name_of(std::uint32_t message) {
  const std::int64_t step = distance(message, static_cast<std::uint32_t>(last_message_));
  last_message_ += static_cast<std::uint64_t>(step);
  return context::kMessageMark | last_message_;
}

// Of a receive from a pool: its message is later than the one due next.
bool Receives::is_ahead(const Session& session, Context id) {
  return (id & context::kMessageMark) != 0 &&
         distance(id, session.sequencer.expected_message()) >= 0;
}

// Matches messages that arrived before their predecessors. A message that does not fit into the
// receive is left: it is checked again when its turn comes.
bool Receives::match_ahead(Session& session) {
  if (!reports_.on_arrival() || reports_.pool() == nullptr) return false;
  bool any = false;
  for (;; any = true) {
    const auto offer = session.sequencer.waiting_ahead();
    PostedReceive receive;
    if (!offer || !can_spare_receive(session, *offer) || !take(offer->message, receive)) return any;
    const auto id = receive.id;
    STP_ASSERT(id == (last_message_ | context::kMessageMark) && !matched_.contains(id),
               "a receive from a pool is named by its message");
    const auto& matched = matched_[id] = {std::move(receive)};
    session.sequencer.receive_ahead(id, session.landing(matched.receive));
  }
}

// Leaves one receive in the pool for each earlier message of this connection that has none yet. So
// the last receive of a pool goes to a message whose turn has come: its event lets the program post
// more receives, however many connections share the pool.
bool Receives::can_spare_receive(const Session& session, const Offer& offer) const {
  const auto& receives = reports_.pool()->receives;
  if (receives.empty() || receives.front().refusal(offer.length) != 0) return false;
  const auto earlier = offer.message - session.sequencer.expected_message();
  const auto served = std::count_if(matched_.begin(), matched_.end(), [&](const auto& entry) {
    return is_ahead(session, entry.first) && distance(entry.first, offer.message) < 0;
  });
  return receives.size() > earlier - static_cast<std::size_t>(served);
}

void Receives::watch_wait(Session& session, Time now, bool open) {
  const bool waits = reports_.receive_wait() != kNever && open &&
                     (session.arrived() != nullptr || session.sequencer.waiting()) &&
                     !has_receive();
  if (!waits)
    starved_at_ = kNever;
  else if (starved_at_ == kNever)
    starved_at_ = now + reports_.receive_wait();
}

// ---- reporting ----

stm_event_t Receives::event(const PostedReceive& receive, int status) const {
  return reports_.event(STM_RECEIVE, status, receive.context);
}

// The event that tells of it. From here on it uses no memory.
stm_event_t Receives::conclusion(PostedReceive& receive, const Outcome& outcome) const {
  auto told = event(receive, outcome.status);
  told.length = outcome.length;
  told.message = program_message(outcome.message);
  told.tag = outcome.tag;
  if (outcome.status != 0 && receive.memory) receive.memory->failed = true;
  receive.memory = {};
  return told;
}

void Receives::conclude(const Session& session, Matched& matched, const Outcome& outcome) {
  STP_ASSERT(!matched.done, "a message is concluded once");
  matched.told = conclusion(matched.receive, outcome);
  matched.done = true;
  tell(session);
}

void Receives::tell(const Session& session) {
  for (auto first = matched_.begin();
       first != matched_.end() && first->second.done && !is_ahead(session, first->first);
       first = matched_.erase(first))
    reports_.receives().push(first->second.told);
}

void Receives::drop_behind_gap(const Session* session, int status) {
  bool gap = false;
  for (auto& [id, matched] : matched_) {
    gap = gap || !matched.done || (session != nullptr && is_ahead(*session, id));
    if (gap && matched.done) matched.told = event(matched.receive, status);
  }
}

void Receives::flush(int status) {
  for (auto& [id, matched] : matched_) {
    if (!matched.done && matched.receive.memory) matched.receive.memory->failed = true;
    reports_.receives().push(matched.done ? matched.told : event(matched.receive, status));
  }
  matched_.clear();
  for (const auto& receive : posted_) reports_.receives().push(event(receive, status));
  posted_.clear();
}

}  // namespace stp::managed
