// SPDX-License-Identifier: BSD-3-Clause
// Takes receives from a pool when messages arrive, and watches messages that wait for one.
#include <algorithm>

#include "libst/managed/connection.h"
#include "stp/base/assert.h"

namespace stp::managed {

// Extends a message number, which wraps, to a name that does not wrap. So receives from a pool are
// ordered by their messages, not by the time at which they were taken.
Context Connection::name_of(std::uint32_t message) {
  const auto step = static_cast<std::int32_t>(message - static_cast<std::uint32_t>(last_message_));
  last_message_ += static_cast<std::uint64_t>(static_cast<std::int64_t>(step));
  return kMessageMark | last_message_;
}

bool Connection::is_ahead(Context id) const {
  if ((id & kMessageMark) == 0 || !sequencer_) return false;
  const auto turn = sequencer_->expected_message();
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(id) - turn) >= 0;
}

// Matches messages that arrived before their predecessors. A message that does not fit into the
// receive is left: it is checked again when its turn comes.
bool Connection::match_ahead() {
  if (!outlets_.on_arrival || !outlets_.pool) return false;
  bool any = false;
  for (;; any = true) {
    const auto offer = sequencer_->waiting_ahead();
    PostedReceive receive;
    if (!offer || !can_spare_receive(*offer) || !take_receive(offer->message, receive)) return any;
    STP_ASSERT(receive.id == (last_message_ | kMessageMark) && !matched_.contains(receive.id),
               "a receive from a pool is named by its message");
    const auto& matched = matched_[receive.id] = {std::move(receive)};
    sequencer_->receive_ahead(last_message_ | kMessageMark, landing_of(matched.receive));
  }
}

// Leaves one receive in the pool for each earlier message of this connection that has none yet. So
// the last receive of a pool goes to a message whose turn has come: its event lets the program post
// more receives, however many connections share the pool.
bool Connection::can_spare_receive(const Offer& offer) const {
  const auto& receives = outlets_.pool->receives;
  if (receives.empty() || receives.front().refusal(offer.length) != 0) return false;
  const auto earlier = offer.message - sequencer_->expected_message();
  const auto served = std::count_if(matched_.begin(), matched_.end(), [&](const auto& m) {
    return is_ahead(m.first) &&
           static_cast<std::int32_t>(static_cast<std::uint32_t>(m.first) - offer.message) < 0;
  });
  return receives.size() > earlier - static_cast<std::size_t>(served);
}

std::uint64_t Connection::span() const {
  if (!outlets_.pool || matched_.empty()) return receives_.size() + matched_.size();
  const auto first = static_cast<std::uint32_t>(matched_.begin()->first);
  const auto last = static_cast<std::uint32_t>(matched_.rbegin()->first);
  const auto turn = sequencer_->expected_message();
  const auto begin = static_cast<std::int32_t>(turn - first) < 0 ? turn : first;
  return last - begin + 1;
}

int Connection::set_watermark(std::uint64_t receives) {
  if (!outlets_.events || over()) return -ENOTCONN;
  if (!outlets_.pool) return -EINVAL;
  if (!watermark_ && !outlets_.events.reserve()) return -EAGAIN;
  watermark_ = receives;
  check_watermark();
  return 0;
}

void Connection::check_watermark() {
  if (!watermark_ || matched_.size() <= *watermark_) return;
  watermark_.reset();
  auto told = event(STM_HIGH, 0, outlets_.context);
  told.length = matched_.size();
  outlets_.events.push(told);
}

// protocol: 9.35
void Connection::watch_wait(Time now) {
  const bool open = state_ == State::kUp || state_ == State::kDraining;
  const bool waits = open && !has_receive() && (has_arrived() || sequencer_->waiting());
  if (!waits || outlets_.receive_wait == kNever)
    starved_at_ = kNever;
  else if (starved_at_ == kNever)
    starved_at_ = now + outlets_.receive_wait;
}

}  // namespace stp::managed
