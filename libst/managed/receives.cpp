// SPDX-License-Identifier: BSD-3-Clause
// Matches messages with receives in the order of sending. A message arrives either in a slot of the
// eager ring or as a write that waits for its grant.
#include <algorithm>
#include <cstring>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "stp/base/assert.h"

namespace stp::managed {

int Connection::post_receive(PostedReceive receive) {
  if (outlets_.pool) return -EINVAL;
  const bool leftovers = state_ == State::kEnding && ending_.keeps_messages;
  if (!outlets_.events || (over() && !leftovers)) return reason_ != 0 ? reason_ : -ENOTCONN;
  if (state_ == State::kDraining || state_ == State::kClosing) return -ESHUTDOWN;
  if (!outlets_.receives.reserve()) return -EAGAIN;
  receive.id = posted_++;
  receives_.push_back(std::move(receive));
  if (leftovers) return go_on_ending(), 0;
  if (!sequencer_) return 0;
  sequencer_->expire(domain_->time());
  if (match()) {
    send_soon();
    domain_->look_before(*this);
  }
  return 0;
}

bool Connection::has_receive() const {
  return outlets_.pool ? !outlets_.pool->receives.empty() : !receives_.empty();
}

// Returns false if there is no receive, or no place for its event.
bool Connection::take_receive(std::uint32_t message, PostedReceive& out) {
  auto& from = outlets_.pool ? outlets_.pool->receives : receives_;
  if (from.empty() || (outlets_.pool && !outlets_.receives.reserve())) return false;
  out = std::move(from.front());
  from.pop_front();
  if (outlets_.pool) out.id = name_of(message);
  starved_at_ = kNever;
  return true;
}

// Returns true if something was matched.
bool Connection::match() {
  if (state_ == State::kAsking || state_ == State::kExpected) {
    const auto offer = hello_landing_ ? std::nullopt : sequencer_->waiting();
    if (!offer) return false;
    if (offer->length > kHelloSize) {
      end(-EPROTO, STM_FAILED, -EPROTO);
      return false;
    }
    hello_landing_ = true;
    sequencer_->post_receive(kHelloIn,
                             staging_.memory->landing(endpoint_, staging_.hello_in(), kHelloSize));
    return true;
  }
  if (state_ != State::kAccepting && state_ != State::kUp && state_ != State::kDraining)
    return false;
  bool any = false;
  for (;; any = true) {
    any |= match_arrived();
    const auto offer = has_arrived() ? std::nullopt : sequencer_->waiting();
    if (!offer || !match_offer(*offer)) break;
  }
  any |= match_ahead();
  check_watermark();
  tell_received();  // a message that was withdrawn may have held up later ones
  if (eager_in_.should_tell()) tell_taken();
  return any;
}

bool Connection::has_arrived() const {
  return sequencer_ && eager_in_.find(sequencer_->expected_message()) != nullptr;
}

bool Connection::match_arrived() {
  bool any = false;
  for (; has_arrived(); any = true)
    if (!match_eager(*eager_in_.find(sequencer_->expected_message()))) break;
  return any;
}

bool Connection::match_eager(const EagerIn::Arrived& arrived) {
  PostedReceive receive;
  const auto head = arrived.head;
  if (!eager_in_.in_turn(arrived)) return break_off(), false;
  if (!take_receive(head.message, receive)) return false;
  STP_ASSERT(!matched_.contains(receive.id), "a receive takes one message");
  const auto refusal = receive.refusal(head.length);
  if (refusal == 0 && head.length != 0)
    std::memcpy(receive.ptr, staging_.eager_in(arrived.slot) + kEagerHead, head.length);
  eager_in_.take(arrived);
  sequencer_->pass_message();
  conclude(matched_[receive.id] = {std::move(receive)}, refusal, head.length, head.message,
           head.tag);
  return true;
}

bool Connection::match_offer(const Offer& offer) {
  if (offer.message == 0) {  // the peer does not speak the managed layer's protocol
    end(-EPROTO, STM_FAILED, -EPROTO);
    return false;
  }
  PostedReceive receive;
  if (!take_receive(offer.message, receive)) return false;
  const auto id = receive.id;
  STP_ASSERT(!matched_.contains(id), "a receive takes one message");
  auto& matched = matched_[id] = {std::move(receive)};
  if (const auto refusal = matched.receive.refusal(offer.length); refusal != 0) {
    sequencer_->refuse_waiting();
    conclude(matched, refusal, offer.length, offer.message, 0);
    return true;
  }
  sequencer_->post_receive(id, landing_of(matched.receive));
  if (eager_in_.has_untold()) tell_taken();
  return true;
}

// An empty message needs a landing too, although nothing is written there.
Landing Connection::landing_of(const PostedReceive& receive) const {
  if (!receive.memory) return staging_.memory->landing(endpoint_, staging_.hello_in(), kHelloSize);
  return receive.memory->landing(endpoint_, receive.ptr, receive.length);
}

void Connection::on_received(const Completion& c) {
  const auto found = matched_.find(c.context);
  if (found == matched_.end()) return;
  const auto& receive = found->second.receive;
  if (c.status == 0 && receive.memory)
    receive.memory->store(receive.ptr, std::min<std::size_t>(c.length, receive.length));
  conclude(found->second, c.status, c.length, c.message, c.tag);
}

stm_event_t Connection::received(const PostedReceive& receive, int status) const {
  return event(STM_RECEIVE, status, receive.context);
}

void Connection::conclude(Matched& matched, int status, std::uint64_t length, std::uint32_t message,
                          std::uint32_t tag) {
  STP_ASSERT(!matched.done, "a message is concluded once");
  matched.told = received(matched.receive, status);
  matched.told.length = length;
  matched.told.message = message > 0 ? message - 1 : 0;
  matched.told.tag = tag;
  matched.receive.memory = {};
  matched.done = true;
  tell_received();
}

// Reports messages in the order of sending, although a short one may arrive before a longer one
// that was sent earlier.
void Connection::tell_received() {
  while (!matched_.empty() && matched_.begin()->second.done && !is_ahead(matched_.begin()->first)) {
    outlets_.receives.push(matched_.begin()->second.told);
    matched_.erase(matched_.begin());
  }
}

void Connection::on_arrived(const Completion& c) {
  if (c.request != eager_served_) return;  // a put with Interrupt into a region of the program
  EagerHead head;
  if (!eager_in_.arrived(c.offset, c.length, staging_, head)) return break_off();
  eager_out_.taken(head.taken);
}

// What is in the ring contradicts the protocol, so messages are missing or wrong.
// protocol: 9.41
void Connection::break_off() {
  ending_.keeps_messages = false;
  farewell_ = Farewell::kBroken;
  end(-EPROTO, STM_FAILED, -EPROTO);
}

void Connection::tell_taken() {
  sequencer_->notify(eager_in_.tell());
}

}  // namespace stp::managed
