// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/offers.h"

#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"

namespace stp {
namespace {

using wire::Op;

constexpr std::size_t kMaxWaiting = 1024;  // further offers are refused

}  // namespace

void Offers::post(Context context, const Landing& landing) {
  receives_.push_back({context, landing});
  match();
}

bool Offers::cancel(Context context) {
  const auto posted = std::find_if(receives_.begin(), receives_.end(),
                                   [=](const Receive& each) { return each.context == context; });
  if (posted == receives_.end()) return false;
  receives_.erase(posted);
  completions_.add(Completion::Kind::kReceive, context, -ECANCELED);
  return true;
}

// protocol: 9.21
void Offers::add(const OfferedWrite& offer) {
  const bool too_far = offer.msn != 0 && !order_.is_near(offer.msn);
  if (waiting_.size() == kMaxWaiting || too_far)
    return outbox_.refuse(Op::kRequestAnswer, offer.i_id);
  waiting_.push_back(offer);
  const auto newest = waiting_.end() - 1;
  const auto place = std::find_if(waiting_.begin(), newest, [&](const OfferedWrite& each) {
    return MessageOrder::is_before(offer.msn, each.msn);
  });
  std::rotate(place, newest, waiting_.end());
  STP_ASSERT(waiting_.size() <= kMaxWaiting, "so many offers wait at most");
  match();
  repeats(offer.i_id);  // no CTS yet: that follows when there is room
}

bool Offers::repeats(std::uint32_t i_id) {
  for (const auto& offer : waiting_) {
    if (offer.i_id != i_id) continue;
    outbox_.tell_seen(offer.i_id, offer.r_id);
    return true;
  }
  return false;
}

// Its place in the order of messages is given up by skip().
bool Offers::take_back(std::uint32_t i_id) {
  const auto before = waiting_.size();
  erase_if(waiting_, [=](const OfferedWrite& offer) { return offer.i_id == i_id; });
  if (waiting_.size() == before) return false;
  finished_.remember(i_id);
  return true;
}

// protocol: 9.22
void Offers::skip(std::uint32_t msn) {
  if (!order_.is_near(msn)) return;  // already handled
  order_.skip(msn);
  match();
}

void Offers::pass_message() {
  order_.pass();
  match();
}

// Refuses an offer longer than its receive.
// protocol: 9.23
void Offers::match() {
  for (drop_past(); !waiting_.empty() && !receives_.empty(); drop_past()) {
    if (order_.is_ahead(waiting_.front().msn)) return;  // an earlier one is on its way
    const auto offer = take_first();
    const auto receive = receives_.front();
    if (offer.length > receive.landing.length) {
      finished_.refuse(Op::kRequestAnswer, offer.i_id);
      continue;
    }
    receives_.pop_front();
    writes_.begin(offer, Completion::Kind::kReceive, receive.context, receive.landing);
  }
}

// The first offer has its turn.
OfferedWrite Offers::take_first() {
  const auto offer = waiting_.front();
  waiting_.pop_front();
  if (offer.msn != 0) order_.pass();
  return offer;
}

// Drops offers that were taken back before they arrived.
void Offers::drop_past() {
  while (!waiting_.empty() && order_.is_past(waiting_.front().msn)) {
    finished_.remember(waiting_.front().i_id);
    waiting_.pop_front();
  }
}

std::optional<Offer> Offers::waiting() {
  drop_past();
  if (waiting_.empty() || !receives_.empty()) return std::nullopt;
  const auto& first = waiting_.front();
  if (order_.is_ahead(first.msn)) return std::nullopt;
  return Offer{first.length, first.msn};
}

void Offers::refuse_waiting() {
  if (waiting()) finished_.refuse(Op::kRequestAnswer, take_first().i_id);
}

// protocol: 9.33
RingQueue<OfferedWrite>::iterator Offers::first_ahead() {
  drop_past();
  return std::find_if(waiting_.begin(), waiting_.end(), [this](const OfferedWrite& offer) {
    return order_.is_ahead(offer.msn) && order_.is_near(offer.msn) && !order_.is_skipped(offer.msn);
  });
}

std::optional<Offer> Offers::waiting_ahead() {
  const auto found = first_ahead();
  if (found == waiting_.end()) return std::nullopt;
  return Offer{found->length, found->msn};
}

void Offers::receive_ahead(Context context, const Landing& landing) {
  const auto found = first_ahead();
  if (found == waiting_.end()) return;
  const auto offer = *found;
  waiting_.erase(found);
  order_.skip(offer.msn);
  writes_.begin(offer, Completion::Kind::kReceive, context, landing);
}

void Offers::fail(int error) {
  for (const auto& receive : receives_)
    completions_.add(Completion::Kind::kReceive, receive.context, error);
  receives_.clear();
  waiting_.clear();
}

}  // namespace stp
