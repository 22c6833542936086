// SPDX-License-Identifier: BSD-3-Clause
// How a connection ends: by either program, by the link, or by a timeout.
#include <algorithm>

#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "stp/base/assert.h"

namespace stp::managed {

int Connection::disconnect(bool abrupt, Farewell why) {
  switch (state_.state()) {
    case State::kIdle:
    case State::kEnded:
    case State::kExpected:
    case State::kRequested:
    case State::kRejecting:
      return -ENOTCONN;
    case State::kEnding:
      ending_.drop_messages();
      go_on_ending();
      return 0;
    case State::kUp:
      if (!abrupt) {
        state_.must(Event::kDisconnect);
        settle();
        domain_->visit(*this);
        return 0;
      }
      break;
    case State::kDraining:
    case State::kClosing:
      if (!abrupt) return 0;
      break;
    case State::kConnecting:
    case State::kAsking:
    case State::kAccepting:
      break;
  }
  end({.flushed = -ECANCELED, .event = STM_DISCONNECTED}, why);
  return 0;
}

// Closes the channel of a graceful end once all operations have completed.
void Connection::settle() {
  if (state_ != State::kDraining) return;
  if (!operations_.empty()) return confirm_quiet_puts();
  if (session_->eager_in.has_untold()) session_->eager_in.tell(session_->sequencer);
  if (pump(domain_->now())) domain_->backend().rung();
  channel_.close(false, to_option(Farewell::kNone));
  state_.must(Event::kDrained);
  ending_.wait(domain_->now());
}

// Ends the connection if its channel had ended at the last look().
void Connection::check_channel() {
  if (seen_ == ChannelState::kConnecting || seen_ == ChannelState::kOpen) return;
  const bool was_up = exchanges_messages() || state_ == State::kClosing;
  int reason = 0;
  if (client::Reply info{};
      was_up && channel_.state() == ChannelState::kPeerClosed && channel_.query(info) == 0)
    reason = status_of_end(info.option);
  if (const auto over = end_of_channel(seen_, state_.state(), channel_.error(), reason)) end(*over);
}

void Connection::check_time(Time now) {
  if (now >= receives_.starved_at())
    return end({.flushed = -ECANCELED, .event = STM_FAILED, .status = -ENOBUFS},
               Farewell::kNoReceive);
  if (now >= std::min(handshake_.deadline(), ending_.deadline()))
    return end(end_of_patience(state_.state()));
  if (session_ && session_->sequencer.is_stuck()) end(failure(-ETIMEDOUT));
}

void Connection::on_breach(Receives::Breach breach) {
  if (breach == Receives::Breach::kNone) return;
  if (breach == Receives::Breach::kUnnumbered) return end(failure(-EPROTO));
  // protocol: 9.41
  ending_.drop_messages();
  end(failure(-EPROTO), Farewell::kBroken);
}

bool Connection::withdraw(const Memory& memory) {
  if (!operations_.uses(memory) && !receives_.uses(memory)) return false;
  if (state_ == State::kEnding) return disconnect(true), true;
  end({.flushed = -ECANCELED, .event = STM_FAILED, .status = -EACCES}, Farewell::kBroken);
  return true;
}

void Connection::abandon() {
  if (state_ == State::kRejecting) return;
  end({.flushed = -ECANCELED, .status = -ECANCELED});
  ending_.be_silent();
  go_on_ending();
  if (state_ == State::kEnded) reports_.close();
}

void Connection::end(const End& end, Farewell why) {
  if (over()) return;
  // Withdraws all grants and stops sending before any memory is given back.
  if (channel_.is_taken()) channel_.close(true, to_option(why));
  domain_->disown(*this);
  state_.must(Event::kOver);
  handshake_.stop_waiting();
  ending_.begin(end);
  domain_->visit(*this);
  go_on_ending();
}

void Connection::go_on_ending() {
  if (state_ != State::kEnding || !channel_.let_go()) return;
  if (ending_.keeps_messages()) on_breach(receives_.match_arrived(*session_).breach);
  if (ending_.flush_once()) flush(ending_.end().flushed);
  if (ending_.keeps_messages() && session_->arrived() != nullptr) return;
  STP_ASSERT(operations_.empty() && !receives_.has_matched(), "all is told before the end is");
  state_.must(Event::kLetGo);
  if (channel_.is_taken()) channel_.leave();
  if (staging_.base != nullptr) domain_->staging().give_back(staging_);
  staging_ = {};
  // If the program has not accepted or rejected the connection yet, it learns of the end when it
  // does.
  if (listener_) listener_->decided(*this);
  listener_.reset();
  const auto& end = ending_.end();
  if (end.event != 0) reports_.tell(end.event, end.status);
  if (reports_.is_open()) reports_.close();
}

// Completes everything with `status`, but messages that are complete and in order.
void Connection::flush(int status) {
  receives_.drop_behind_gap(session_ ? &*session_ : nullptr, status);
  if (session_) {
    session_->sequencer.fail(status);
    Completion c;
    while (session_->sequencer.next_completion(c)) on_completion(c);
  }
  operations_.flush(status);
  receives_.flush(status);
  read_requests_.clear();
  peer_regions_.clear();
  served_regions_.clear();
}

}  // namespace stp::managed
