// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/connection.h"

#include <algorithm>

#include "libst/client/wait.h"
#include "libst/managed/listener.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

// Timeout for the peer's confirmation of the end, after the queued operations are done.
constexpr Time kClosePatience = 30 * kSecond;

}  // namespace

Connection::~Connection() = default;

// ---- progress ----

Time Connection::next_deadline() const {
  const bool at_work = sequencer_ && state_ != State::kClosing && state_ != State::kEnding;
  if (!at_work) return wait_until_;
  return std::min({wait_until_, starved_at_, sequencer_->next_deadline()});
}

void Connection::progress(Time now) {
  look();
  advance(now);
  conclude(now);
  domain_->visit(*this);
}

bool Connection::look() {
  seen_ = channel_.state();
  return seen_ != ChannelState::kConnecting && seen_ != ChannelState::kOpen && !over();
}

bool Connection::wants_another_look() const {
  if (state_ == State::kEnding) return !let_go();
  // Polls, because the doorbell of the end may reach the channel number's next owner instead, which
  // may be a connection of another domain.
  if (state_ == State::kClosing) return true;
  if (over() || !sequencer_) return false;
  return channel_.readable() || sequencer_->waits_for_node();
}

bool Connection::waits_for_this_side() const {
  if (!read_requests_.empty() || has_arrived()) return true;
  if (over() || !sequencer_) return false;
  return sequencer_->has_offers();
}

void Connection::advance(Time now) {
  if (state_ == State::kEnding) return go_on_ending();
  if (!sequencer_ && seen_ != ChannelState::kConnecting && !opened(now)) return;
  if (sequencer_) {
    // Limits the turns so that other connections make progress too. After the end everything is
    // read: nothing more can follow.
    constexpr unsigned kTurns = 8;
    const bool last = seen_ != ChannelState::kOpen;
    for (unsigned turn = 0; (last || turn < kTurns) && !over() && move(now); ++turn) {
    }
    if (!over() && channel_.readable()) domain_->wake_waiters();
  }
}

void Connection::conclude(Time now) {
  if (over()) return;
  if (!sequencer_ && seen_ != ChannelState::kConnecting) return;  // it ended when it was opened
  settle();
  check_end(seen_);
  check_time(now);
}

bool Connection::move(Time now) {
  ReceivedEntry entry;
  while (channel_.receive(entry)) sequencer_->receive(entry, now);
  sequencer_->taken(channel_.taken(), now);
  sequencer_->observe_loss(channel_.cts_repeated());
  sequencer_->expire(now);
  Completion c;
  while (!over() && sequencer_->next_completion(c)) on_completion(c);
  if (over()) return false;
  // A peer sends a message or a request only after it has learned that it was accepted. So its
  // confirmation was lost.
  if (state_ == State::kAccepting &&
      (has_arrived() || sequencer_->waiting() || !read_requests_.empty()))
    up();
  match();
  if (over()) return false;
  watch_wait(now);
  tell_read_requests();
  begin_operations();
  send_soon();
  return channel_.readable() || sequencer_->has_completion();
}

void Connection::send_soon() {
  if (sequencer_->has_request()) domain_->send_soon(*this);
}

bool Connection::pump(Time now) {
  if (state_ == State::kClosing || over()) return false;  // the service may not read any more
  STP_ASSERT(sequencer_, "a connection that has something to send is open");
  bool any = false;
  sequencer_->taken(channel_.taken(), now);
  for (; channel_.writable() && sequencer_->transmit(channel_.next(), now); any = true)
    channel_.send_next();
  if (any) domain_->backend().ring(bell_);
  return any;
}

// Closes the channel of a graceful end once all operations have completed.
void Connection::settle() {
  if (state_ != State::kDraining) return;
  if (!operations_.empty()) return confirm_quiet_puts();
  if (eager_in_.has_untold()) sequencer_->notify(eager_in_.tell());
  if (pump(domain_->now())) domain_->backend().rung();
  disconnect_channel(false);
  state_.must(Event::kDrained);
  wait_until_ = domain_->now() + kClosePatience;
}

// ---- the end ----

void Connection::check_end(ChannelState state) {
  switch (state) {
    case ChannelState::kConnecting:
    case ChannelState::kOpen:
      return;
    case ChannelState::kFailed: {
      const auto error = channel_.error() < 0 ? channel_.error() : -ECONNABORTED;
      return end(error, STM_FAILED, error);
    }
    case ChannelState::kPeerClosed:
    case ChannelState::kClosed:
      break;
  }
  const bool ours = state_ == State::kClosing;
  const bool was_up = ours || state_ == State::kUp || state_ == State::kDraining;
  if (!was_up) return end(-ENOTCONN, STM_FAILED, -ENOTCONN);
  if (const auto reason = peers_reason(); reason != 0) return end(reason, STM_FAILED, reason);
  ending_.keeps_messages = state_ == State::kUp;
  end(ours ? -ECANCELED : -ENOTCONN, STM_DISCONNECTED, 0);
}

int Connection::peers_reason() const {
  if (channel_.state() != ChannelState::kPeerClosed) return 0;
  auto request = client::request_for(client::RequestKind::kVcInfo);
  request.vc = vc_;
  client::Reply info{};
  return domain_->backend().exchange(request, info) == 0 ? status_of_end(info.option) : 0;
}

void Connection::check_time(Time now) {
  if (over()) return;
  if (now >= starved_at_) {
    farewell_ = Farewell::kNoReceive;
    return end(-ECANCELED, STM_FAILED, -ENOBUFS);
  }
  const bool late = now >= wait_until_;
  if (late && state_ == State::kRejecting) return end(-ECANCELED, 0, 0);
  if (late && state_ == State::kClosing) return end(-ECANCELED, STM_DISCONNECTED, 0);
  if (late || (sequencer_ && sequencer_->is_stuck())) end(-ETIMEDOUT, STM_FAILED, -ETIMEDOUT);
}

void Connection::give_up() {
  end(-ETIMEDOUT, STM_FAILED, -ETIMEDOUT);
}

int Connection::disconnect(bool abrupt, Farewell why) {
  switch (state_.state()) {
    case State::kIdle:
    case State::kEnded:
    case State::kExpected:
    case State::kRequested:
    case State::kRejecting:
      return -ENOTCONN;
    case State::kEnding:
      ending_.keeps_messages = false;
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
  farewell_ = why;
  end(-ECANCELED, STM_DISCONNECTED, 0);
  return 0;
}

void Connection::abandon() {
  if (state_ == State::kRejecting) return;
  end(-ECANCELED, 0, -ECANCELED);
  ending_.event = 0;
  ending_.keeps_messages = false;
  go_on_ending();
  if (state_ == State::kEnded) release_outlets();
}

void Connection::end(int flushed, std::uint32_t event, int status) {
  if (over()) return;
  // Withdraws all grants and stops sending before any memory is given back.
  if (vc_ != kNoneId) disconnect_channel(true);
  domain_->disown(*this);
  state_.must(Event::kOver);
  reason_ = status;
  wait_until_ = kNever;
  ending_ = {flushed, event, status, ending_.keeps_messages, false};
  domain_->visit(*this);
  go_on_ending();
}

bool Connection::let_go() const {
  return vc_ == kNoneId || channel_.done(channel_.sent()) ||
         channel_.state() == ChannelState::kClosed || domain_->backend().error() != 0;
}

void Connection::go_on_ending() {
  if (state_ != State::kEnding || !let_go()) return;
  if (ending_.keeps_messages) match_arrived();
  if (!std::exchange(ending_.has_flushed, true)) flush(ending_.flushed);
  if (ending_.keeps_messages && has_arrived()) return;
  STP_ASSERT(operations_.empty() && matched_.empty(), "all is told before the end is");
  state_.must(Event::kLetGo);
  if (vc_ != kNoneId) channel_.leave();
  if (staging_.base != nullptr) domain_->staging().give_back(staging_);
  staging_ = {};
  // If the program has not accepted or rejected the connection yet, it learns of the end when it
  // does.
  if (listener_) listener_->decided(*this);
  listener_.reset();
  if (ending_.event != 0) tell(ending_.event, ending_.status);
  if (outlets_.events) release_outlets();
}

// Flushes complete messages that follow an incomplete one: delivering them would leave a gap in the
// order of messages.
void Connection::drop_behind_gap(int status) {
  bool gap = false;
  for (auto& [id, matched] : matched_) {
    gap = gap || !matched.done || is_ahead(id);
    if (gap && matched.done) matched.told = received(matched.receive, status);
  }
}

void Connection::flush(int status) {
  drop_behind_gap(status);
  if (sequencer_) {
    sequencer_->fail(status);
    Completion c;
    while (sequencer_->next_completion(c)) on_completion(c);
  }
  while (!operations_.empty()) complete(*operations_.oldest(), status);
  for (auto& [id, matched] : matched_)
    outlets_.receives.push(matched.done ? matched.told : received(matched.receive, status));
  matched_.clear();
  for (const auto& receive : receives_) outlets_.receives.push(received(receive, status));
  receives_.clear();
  read_requests_.clear();
  remotes_.clear();
  served_.clear();
}

void Connection::disconnect_channel(bool at_once) {
  auto request = client::request_for(client::RequestKind::kClose);
  request.vc = vc_;
  request.at_once = at_once ? 1 : 0;
  request.option = to_option(farewell_);
  client::Reply reply{};
  domain_->backend().exchange(request, reply);
}

// ---- events ----

stm_event_t Connection::event(std::uint32_t kind, int status, std::uint64_t context) const {
  stm_event_t event{};
  event.kind = kind;
  event.status = status;
  event.context = context;
  event.connection = reinterpret_cast<stm_connection_t>(handle_);
  return event;
}

void Connection::tell(std::uint32_t kind, int status) {
  if (!outlets_.events || outlets_.events.held() == 0) return;
  outlets_.events.push(event(kind, status, outlets_.context));
}

int Connection::set_outlets(Outlets outlets) {
  // Reserved for the events of the connection's beginning and of its end.
  constexpr std::size_t kOwnNews = 2;
  if (!outlets.events.reserve(kOwnNews)) return -EAGAIN;
  if (outlets.pool) ++outlets.pool->users;
  outlets_ = std::move(outlets);
  return 0;
}

void Connection::release_outlets() {
  STP_ASSERT(!outlets_.pool || outlets_.pool->users > 0, "a connection's pool is in use");
  if (outlets_.pool) --outlets_.pool->users;
  const auto context = outlets_.context;
  outlets_ = {};
  outlets_.context = context;
}

void Connection::query(stm_connection_info_t& info) const {
  switch (state_.state()) {
    case State::kIdle:
      info.state = STM_IDLE;
      break;
    case State::kConnecting:
    case State::kAsking:
    case State::kAccepting:
      info.state = STM_CONNECTING;
      break;
    case State::kExpected:
    case State::kRequested:
      info.state = STM_REQUESTED;
      break;
    case State::kUp:
      info.state = STM_UP;
      break;
    case State::kDraining:
    case State::kClosing:
    case State::kRejecting:
    case State::kEnding:
      info.state = STM_ENDING;
      break;
    case State::kEnded:
      info.state = STM_ENDED;
      break;
  }
  info.reason = reason_;
  info.context = outlets_.context;
  info.peer_mac = peer_mac_.to_u64();
  info.operations = operations_.size();
  info.receives = receives_.size() + matched_.size();
  info.eager = eager_out_.most();
  info.span = span();
  info.local_port = local_port_;
  info.peer_port = peer_port_;
}

}  // namespace stp::managed
