// SPDX-License-Identifier: BSD-3-Clause
// Messages take receives in the order in which they were sent, whichever way they came: in a slot
// of the eager ring, or as a write that waits for its grant.
#include <cstring>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"

namespace stp::managed {

int Connection::post_receive(PostedReceive receive) {
  if (outlets_.pool) return -EINVAL;
  if (!outlets_.events) return state_ == State::kEnded && reason_ != 0 ? reason_ : -ENOTCONN;
  if (state_ == State::kDraining || state_ == State::kClosing) return -ESHUTDOWN;
  if (!outlets_.receives.reserve()) return -EAGAIN;
  receive.id = next_id_++;
  receives_.push_back(std::move(receive));
  if (!sequencer_) return 0;
  auto const now = client::now();
  sequencer_->expire(now);
  if (match()) {
    pump(now);
    domain_->look_before(next_deadline());
  }
  return 0;
}

bool Connection::has_receive() const {
  return outlets_.pool ? !outlets_.pool->receives.empty() : !receives_.empty();
}

// False: there is none, or its completion would find no place.
bool Connection::take_receive(PostedReceive& out) {
  auto& from = outlets_.pool ? outlets_.pool->receives : receives_;
  if (from.empty() || (outlets_.pool && !outlets_.receives.reserve())) return false;
  out = std::move(from.front());
  from.pop_front();
  if (outlets_.pool) out.id = next_id_++;
  return true;
}

// True: something was matched.
bool Connection::match() {
  if (state_ == State::kAsking || state_ == State::kExpected) {
    auto const offer = hello_landing_ ? std::nullopt : sequencer_->waiting();
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
    auto const* const arrived = eager_in_.find(sequencer_->expected_message());
    if (arrived != nullptr) {
      if (!match_eager(*arrived)) break;
      continue;
    }
    auto const offer = sequencer_->waiting();
    if (!offer || !match_offer(*offer)) break;
  }
  if (eager_in_.should_tell()) tell_taken();
  return any;
}

bool Connection::match_eager(const EagerIn::Arrived& arrived) {
  PostedReceive receive;
  if (!take_receive(receive)) return false;
  auto const head = arrived.head;
  bool const fits = head.length <= receive.length;
  if (fits && head.length != 0)
    std::memcpy(receive.ptr, staging_.eager_in(arrived.slot) + kEagerHead, head.length);
  eager_in_.take(head.message);
  sequencer_->pass_message();
  complete(receive, fits ? 0 : -EMSGSIZE, head.length, head.message, head.tag);
  return true;
}

bool Connection::match_offer(const Offer& offer) {
  PostedReceive receive;
  if (!take_receive(receive)) return false;
  if (offer.length > receive.length) {
    sequencer_->refuse_waiting();
    complete(receive, -EMSGSIZE, offer.length, offer.message, 0);
    return true;
  }
  // The empty message needs a place as well, though nothing is written there.
  auto const landing = receive.memory
                           ? receive.memory->landing(endpoint_, receive.ptr, receive.length)
                           : staging_.memory->landing(endpoint_, staging_.hello_in(), kHelloSize);
  auto const id = receive.id;
  landings_.emplace(id, std::move(receive));
  sequencer_->post_receive(id, landing);
  if (eager_in_.has_untold()) tell_taken();
  return true;
}

void Connection::on_received(const Completion& c) {
  auto const found = landings_.find(c.context);
  if (found == landings_.end()) return;
  auto receive = std::move(found->second);
  landings_.erase(found);
  complete(receive, c.status, c.length, c.message, c.tag);
}

void Connection::complete(PostedReceive& receive, int status, std::uint64_t length,
                          std::uint32_t message, std::uint32_t tag) {
  auto told = event(STM_RECEIVE, status, receive.context);
  told.length = length;
  told.message = message > 0 ? message - 1 : 0;
  told.tag = tag;
  receive.memory = {};
  outlets_.receives.push(told);
}

void Connection::on_arrived(const Completion& c) {
  if (c.request != eager_served_) return;  // an urgent put into a region of the program's
  EagerHead head;
  if (eager_in_.arrived(c.offset, staging_, head)) eager_out_.taken(head.taken);
}

void Connection::tell_taken() {
  sequencer_->notify(eager_in_.tell());
}

}  // namespace stp::managed
