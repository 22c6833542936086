// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/connection.h"

#include <algorithm>
#include <limits>

#include "libst/client/answers.h"
#include "libst/client/error.h"
#include "libst/client/links.h"
#include "libst/client/wait.h"
#include "libst/ipc/requests.h"
#include "libst/managed/listener.h"
#include "libst/managed/memory.h"
#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"

namespace stp::managed {

Connection::Connection(std::shared_ptr<Domain> domain)
    : domain_(std::move(domain)), channel_(domain_->backend()) {}

Connection::~Connection() = default;

// ---- posting ----

// Returns why nothing can be posted in this state; 0: it can.
int Connection::cannot_post() const {
  switch (facts().posting) {
    case Posting::kWaits:
    case Posting::kBegins:
      return 0;
    case Posting::kTooLate:
      return -ESHUTDOWN;
    case Posting::kRefused:
      break;
  }
  return ending_.reason() != 0 ? ending_.reason() : -ENOTCONN;
}

// Runs once per operation, so it is one function.
[[gnu::flatten]] int Connection::post() {
  domain_->mutex().is_held();
  const bool begins = is_up();
  if (!begins)
    if (const auto error = cannot_post(); error != 0) return error;
  if (!operations_.post(posted_)) return confirm_quiet_puts(), -EAGAIN;
  ++posted_;
  if (!begins) return 0;
  const auto now = domain_->time();
  session_->sequencer.expire(now);
  operations_.begin(*session_);
  has_posted(now);
  return 0;
}

int Connection::send_at_once(const Pieces& bytes) {
  domain_->mutex().is_held();
  if (const auto error = cannot_post(); error != 0) return error;
  if (!is_up()) return -EAGAIN;
  const auto now = domain_->time();
  session_->sequencer.expire(now);
  const auto error = operations_.send_at_once(*session_, bytes, posted_);
  if (error == -ENOBUFS) return confirm_quiet_puts(), -EAGAIN;
  if (error != 0) return has_posted(now), error;
  ++posted_;
  has_posted(now);
  return 0;
}

void Connection::has_posted(Time now) {
  domain_->mutex().is_held();
  if (!domain_->joins_burst(entry_)) send_soon(now);
  if (session_->eager_in.session_waits()) [[unlikely]] {
    domain_->visit(*this);
    domain_->look_before(domain_->time());
  }
  // Mostly its deadline is that of what was posted before.
  if (session_->sequencer.next_deadline() < domain_->due(entry_)) domain_->look_before(*this);
}

int Connection::post_receive(PostedReceive receive) {
  domain_->mutex().is_held();
  if (reports_.pool() != nullptr)
    return client::fail(-EINVAL, "the connection has a pool: post the receive there");
  const bool leftovers = ending() && ending_.keeps_messages();
  if (!reports_.is_open() || (over() && !leftovers))
    return ending_.reason() != 0 ? ending_.reason() : -ENOTCONN;
  if (!over() && cannot_post() == -ESHUTDOWN) return -ESHUTDOWN;
  if (!reports_.receives().reserve()) return -EAGAIN;
  receive.id = posted_++;
  receives_.post(std::move(receive));
  if (leftovers) return go_on_ending(), 0;
  if (!session_) return 0;
  session_->sequencer.expire(domain_->time());
  if (match()) {
    send_soon();
    domain_->look_before(*this);
  }
  return 0;
}

int Connection::set_watermark(std::uint64_t receives) {
  if (!reports_.is_open() || over()) return -ENOTCONN;
  if (reports_.pool() == nullptr) return client::fail(-EINVAL, "the connection has no pool");
  return receives_.set_watermark(receives);
}

int Connection::refuse_read(std::uint32_t request) {
  domain_->mutex().is_held();
  if (!exchanges_messages()) return -ENOTCONN;
  session_->sequencer.expire(domain_->time());
  const auto error = session_->sequencer.refuse(request);
  if (error == 0) send_soon();
  return error;
}

// Cancels what was posted first with that context, be it an operation or a receive.
int Connection::cancel(std::uint64_t context) {
  domain_->mutex().is_held();
  auto* const operation = operations_.find(context);
  const auto before =
      operation != nullptr ? operation->posted : std::numeric_limits<std::uint64_t>::max();
  if (const auto id = receives_.find_matched(context, before)) {
    if (over()) return 0;
    const auto error = session_->sequencer.cancel(*id);
    if (error == 0) receives_.cancelled(*id);
    return progress(domain_->now()), error;
  }
  if (receives_.cancel(context, before)) return 0;
  if (operation == nullptr)
    return client::fail(-ENOENT, "no operation and no receive with this context is outstanding");
  if (over()) return 0;  // it completes as soon as the link has released it
  const bool sent = operation->eager;
  const auto error = operations_.cancel(session_ ? &*session_ : nullptr, *operation);
  // The operations behind it may begin now.
  if (error == 0 && !sent && session_) progress(domain_->now());
  return error;
}

// Cancels the receive that was posted first with that context, unless a message arrives for it.
int Connection::withdraw(std::uint64_t context) {
  constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
  if (receives_.cancel(context, kAny)) return 0;
  return receives_.find_matched(context, kAny)
             ? client::fail(-EBUSY, "a message is arriving for the receive")
             : client::fail(-ENOENT, "no receive with this context is posted");
}

void Connection::confirm_quiet_puts() {
  if (!session_) return;
  operations_.confirm_quiet(*session_);
  send_soon();
}

void Connection::revoke(const Access& access) {
  domain_->mutex().is_held();
  if (!session_ || over() || !served_regions_.serves(access.key())) return;
  session_->sequencer.expire(domain_->time());
  served_regions_.revoke(session_->sequencer, access.key());
  send_soon();
  domain_->visit(*this);
}

// ---- progress ----

Time Connection::next_deadline() const {
  const auto answer = std::min(handshake_.deadline(), ending_.deadline());
  if (!session_ || stage() >= ConnectionStage::kClosing) return answer;
  return std::min({answer, receives_.starved_at(), session_->sequencer.next_deadline()});
}

void Connection::progress(Time now) {
  domain_->mutex().is_held();
  look();
  advance(now);
  conclude(now);
  domain_->visit(*this);
}

void Connection::fetch_ahead(unsigned step) const {
  if (step == 0) {
    fetch_line(this);
    fetch_lines(&state_, &served_regions_);
    fetch_line(&read_requests_);
    return fetch_line(&ending_);
  }
  if (!session_) return;
  session_->sequencer.fetch_ahead(step - 1);
  if (step != 1) return;
  channel_.fetch_ahead();
  operations_.fetch_ahead();
  peer_regions_.fetch_ahead();
  // The program is likely to post the next operation.
  client::HandleTable::instance().fetch_ahead(handle());
}

bool Connection::look() {
  seen_ = channel_.state();
  return seen_ != ChannelState::kConnecting && seen_ != ChannelState::kOpen && !over();
}

bool Connection::wants_another_look() const {
  if (ending()) return !channel_.let_go();
  // Polls, because the doorbell of the end may reach the channel number's next owner instead, which
  // may be a connection of another domain.
  if (stage() == ConnectionStage::kClosing) return true;
  if (over() || !session_) return false;
  return channel_.readable() || session_->sequencer.waits_for_node();
}

bool Connection::waits_for_this_side() const {
  if (!read_requests_.empty()) return true;
  if (!session_) return false;
  return session_->arrived() != nullptr ||
         (!over() && (session_->sequencer.has_offers() || session_->eager_in.session_waits()));
}

void Connection::advance(Time now) {
  if (ending()) return go_on_ending();
  if (is_dialing() && !channel_.is_taken()) return;  // check_time() asks again
  if (!session_ && seen_ != ChannelState::kConnecting && !opened(now)) return;
  if (session_) {
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
  const bool is_between = is_dialing() && !channel_.is_taken();
  if (!is_between && !session_ && seen_ != ChannelState::kConnecting)
    return;  // it ended when it was opened
  settle();
  if (!over() && !is_between) check_channel();
  if (!over()) check_time(now);
}

bool Connection::move(Time now) {
  auto& sequencer = session_->sequencer;
  channel_.receive(sequencer, now);
  // A put that is complete ends no connection.
  operations_.complete_puts(*session_);
  Completion c;
  while (!over() && sequencer.next_completion(c)) on_completion(c);
  if (over()) return false;
  if (session_->eager_in.wait(false)) [[unlikely]]
    serve_ring();
  // A peer sends a message or a request only after it has learned that it was accepted. So its
  // confirmation was lost.
  if (facts().greeting == Greeting::kAccepts &&
      (session_->arrived() != nullptr || sequencer.waiting() || !read_requests_.empty()))
    up();
  match();
  if (over()) return false;
  receives_.watch_wait(*session_, now, exchanges_messages());
  if (exchanges_messages()) {
    read_requests_.tell(reports_);
    operations_.begin(*session_);
  }
  send_soon();
  return channel_.readable() || sequencer.has_completion();
}

void Connection::send_soon(Time now) {
  domain_->mutex().is_held();
  if (session_->sequencer.has_request()) domain_->send_soon(*this, now);
}

// Returns true if something was matched.
bool Connection::match() {
  if (facts().greeting == Greeting::kAwaits) {
    bool begun = false;
    if (!handshake_.receive(*session_, begun)) end(failure(-EPROTO));
    return begun;
  }
  if (facts().greeting != Greeting::kAccepts && !exchanges_messages()) return false;
  const auto [any, breach] = receives_.match(*session_);
  on_breach(breach);
  return any;
}

// ---- completions of the Sequencer ----

void Connection::on_completion(const Completion& c) {
  using Kind = Completion::Kind;
  switch (c.kind) {
    case Kind::kReceive:
      return c.context == context::kHelloIn ? on_hello(c) : receives_.on_received(*session_, c);
    case Kind::kRegion:
      return on_region(c);
    case Kind::kReadRequest:
      return on_read_request(c);
    case Kind::kRegionRequest:
      return on_region_request(c);
    case Kind::kEnded:
      return served_regions_.on_ended(c.request);
    case Kind::kRevoked:
      session_->eager_out.on_revoked(c.region);
      return peer_regions_.on_revoked(c.region);
    case Kind::kArrived:
      if (!session_->on_arrived(c)) on_breach(Receives::Breach::kRing);
      return;
    case Kind::kNotice:
      return session_->taken(c.tag);
    case Kind::kWrite:
      if (c.context == context::kHelloOut) return hello_sent(c.status);
      return operations_.on_completion(*session_, c);
    case Kind::kRead:
    case Kind::kServe:
    case Kind::kPut:
    case Kind::kGet:
    case Kind::kFetch:
      return operations_.on_completion(*session_, c);
  }
}

// The peer has answered a request for a region.
void Connection::on_region(const Completion& c) {
  if (c.context != (context::kKeyMark | kEagerKey)) return peer_regions_.on_answer(c);
  session_->eager_out.on_answer(c);
}

void Connection::on_read_request(const Completion& c) {
  if (!read_requests_.add(c)) session_->sequencer.refuse(c.request);
}

// The peer requests a region by its key.
void Connection::on_region_request(const Completion& c) {
  domain_->mutex().is_held();
  auto& sequencer = session_->sequencer;
  if (c.tag == kEagerKey && session_->eager_in.ask(c.request)) {
    auto& ring = session_->eager_in;
    if (!ring.serve_small(sequencer, staging_, endpoint_, c.offset)) serve_ring();
    return;
  }
  // Whoever knows a key is no peer of the program before that has accepted it.
  const bool accepted = !listener_ && facts().greeting != Greeting::kRejects;
  auto& wrong = domain_->wrong_keys();
  if (accepted && wrong.holds(*this) && wrong.add(*this, c)) return;
  if (!accepted || over() || wrong.holds(*this)) {
    sequencer.refuse(c.request);
    return;
  }
  if (serve_region(c)) return;
  const auto now = domain_->now();
  const auto then = wrong.next(now);
  if (then > now)
    wrong.hold(*this, c, then);
  else
    sequencer.refuse(c.request);
}

// False: the key is wrong.
bool Connection::serve_region(const Completion& c) {
  domain_->mutex().is_held();
  const auto access = domain_->find_access(c.tag);
  Landing landing;
  if (access == nullptr || !access->permits(*this, reports_.group()) ||
      access->landing(endpoint_, landing) != 0 || landing.length < c.length)
    return false;
  served_regions_.serve(session_->sequencer, c, landing,
                        {.base = access->terms().address, .access = access->terms().access});
  return true;
}

void Connection::refuse_key(const WrongKeys::Requests& requests) {
  domain_->mutex().is_held();
  session_->sequencer.expire(domain_->time());
  session_->sequencer.refuse(requests.front().request);
  for (std::size_t i = 1; i < requests.size(); ++i) on_region_request(requests[i]);
  send_soon();
  domain_->visit(*this);
}

// If the peer has asked for it. If there is no memory for it now, the peer waits for the answer.
void Connection::serve_ring() {
  domain_->mutex().is_held();
  if (!session_->eager_in.is_asked()) return;
  auto& staging = domain_->staging();
  if (session_->eager_in.has_small() && !staging.has_few_rings())
    return session_->eager_in.refuse(session_->sequencer);
  const auto ring = staging.take_ring();
  if (ring && !session_->eager_in.serve(session_->sequencer, *ring, endpoint_))
    staging.give_back(*ring);
  if (!ring && staging.refuses_rings()) session_->eager_in.refuse(session_->sequencer);
  if (session_->eager_in.is_asked()) session_->eager_in.wait(true);
}

void Connection::query(stm_connection_info_t& info) const {
  info.state = facts().shown;
  info.reason = ending_.reason();
  info.context = reports_.context();
  info.peer_mac = peer_mac_.to_u64();
  info.operations = operations_.size();
  info.quiet = operations_.quiet();
  info.receives = receives_.size();
  info.eager = session_ ? session_->eager_out.most() : 0;
  info.span = receives_.span(session_ ? &*session_ : nullptr);
  info.local_port = local_port_;
  info.peer_port = peer_port_;
}

// ---- how it opens: a Virtual Connection, then a request and its answer as the first messages ----

void Connection::take_channel(EndpointId endpoint, const client::GivenChannel& given,
                              std::shared_ptr<ipc::SharedMemory> memory, const Staging& staging) {
  domain_->mutex().is_held();
  STP_ASSERT(!session_ && (state_.allows(Event::kOpened) || state_.allows(Event::kRequest)),
             "a channel is taken to connect, or came from a listener");
  endpoint_ = endpoint;
  staging_ = staging;
  channel_.take(given, std::move(memory), domain_->number());
  look();
  domain_->activate(shared_from_this());
}

int Connection::ask_for_channel(client::GivenChannel& given,
                                std::shared_ptr<ipc::SharedMemory>& memory) {
  const ask::Connect request{.endpoint = domain_->first_endpoint(),
                             .mac = wanted_->mac.to_u64(),
                             .uport = wanted_->uport,
                             .option = {}};
  ask::Connect::Reply made{};
  client::Payload payload;
  const auto error = domain_->backend().call(request, made, payload);
  given = made.channel;
  memory = std::move(payload.memory);
  return error;
}

int Connection::connect(Wanted wanted, const Staging& staging, Hello hello) {
  domain_->mutex().is_held();
  client::GivenChannel given{};
  std::shared_ptr<ipc::SharedMemory> memory;
  wanted_ = std::make_unique<Wanted>(std::move(wanted));
  if (const auto error = ask_for_channel(given, memory); error != 0) {
    wanted_.reset();
    return error;
  }
  handshake_.connect(std::move(hello), wanted_->silent, wanted_->deadline);
  state_.must(Event::kConnect);
  peer_mac_ = wanted_->mac;
  take_channel(domain_->first_endpoint(), given, std::move(memory), staging);
  await_answer(domain_->now());
  return 0;
}

// The present address is tried from now on: somebody has to answer within its share of the time.
void Connection::await_answer(Time now) {
  domain_->mutex().is_held();
  auto& [mac, uport, silent, deadline, others] = *wanted_;
  // It was over before the station was known.
  if (others && silent <= now) silent = now + Handshake::kStillSilent;
  auto until = std::min(silent, deadline);
  // The host has fallen silent before.
  if (silent != kNever && domain_->silent_peers().contains(mac, now))
    until = std::min(until, now + Handshake::kStillSilent);
  if (others) {
    others->begin(now, until);
    until = std::min(others->limit(), others->look_at());
  }
  handshake_.wait_until(until);
}

// Nobody has answered yet; or, if `failed`, the link has given up. Returns true if the connection
// goes on: it waits for longer, or asks at the next address.
bool Connection::dials_on(Time now, bool failed) {
  domain_->mutex().is_held();
  if (!is_dialing() || !wanted_->others || wanted_->others->is_over()) return false;
  auto& others = *wanted_->others;
  auto& backend = domain_->backend();
  const client::KeepFailure keep;
  const auto limit = channel_.is_taken() ? others.limit() : others.ask_by();
  const bool has_time = !failed && now < limit;
  if (has_time && !channel_.is_taken()) return dial(now), true;
  if (has_time && !client::is_reported_gone(backend, wanted_->mac)) {
    others.looked(now);
    handshake_.wait_until(std::min(limit, others.look_at()));
    return true;
  }
  const auto why = channel_.is_taken() ? client::trouble_of(backend, wanted_->mac) : "";
  has_time ? others.give_up_for_now(why) : others.give_up(why);
  if (others.is_over() || now >= std::min(wanted_->silent, wanted_->deadline)) return false;
  if (channel_.is_taken()) {
    channel_.drop();
    domain_->disown(*this);
  }
  await_answer(now);
  dial(now);
  return true;
}

// Asks at the present address of those that are left, or at the next one that the link reaches.
void Connection::dial(Time now) {
  domain_->mutex().is_held();
  constexpr Time kAskedAgain = 5 * kMillisecond;
  auto& others = *wanted_->others;
  for (;;) {
    auto error = client::ask_station(domain_->backend(), others.present(), wanted_->mac);
    if (error == -EAGAIN)
      return handshake_.wait_until(std::min(others.ask_by(), now + kAskedAgain));
    client::GivenChannel given{};
    std::shared_ptr<ipc::SharedMemory> memory;
    if (error == 0) error = ask_for_channel(given, memory);
    if (error == 0) {
      channel_.take(given, std::move(memory), domain_->number());
      peer_mac_ = wanted_->mac;
      look();
      await_answer(now);
      return domain_->readdress(*this);
    }
    // The service itself may give that, too.
    if (error == -ETIMEDOUT || !client::Tries::is_of_address(error)) return end(failure(error));
    others.give_up(client::describe(error));
    if (others.is_over()) return end(end_of_patience(state_.state()));
    await_answer(now);
  }
}

std::string Connection::tried() const {
  if (!wanted_ || !wanted_->others || !wanted_->others->has_news()) return "";
  const auto& others = *wanted_->others;
  return others.text() + (others.any_silent() ? client::hint_at_firewalls(domain_->backend()) : "");
}

void Connection::expect(std::shared_ptr<Listener> listener, EndpointId endpoint,
                        const MacAddr& peer, const client::GivenChannel& given,
                        std::shared_ptr<ipc::SharedMemory> memory, const Staging& staging) {
  domain_->mutex().is_held();
  listener_ = std::move(listener);
  peer_mac_ = peer;
  handshake_.expect(domain_->now());
  state_.must(Event::kExpect);
  take_channel(endpoint, given, std::move(memory), staging);
}

// Called once the Virtual Connection is open or has failed. Returns false if it failed.
bool Connection::opened(Time now) {
  domain_->mutex().is_held();
  ask::VcInfo::Reply reply{};
  const auto& info = reply.facts;
  if (channel_.state() == ChannelState::kOpen)
    if (const auto error = channel_.query(reply); error != 0) {
      end(failure(error));
      return false;
    }
  seen_ = channel_.state();
  if (seen_ != ChannelState::kOpen) {
    const bool has_failed = seen_ == ChannelState::kFailed;
    if (has_failed && channel_.error() == -ECONNREFUSED && wanted_ && wanted_->others)
      wanted_->others->answered("refused");
    if (!has_failed || !client::Tries::is_of_address(channel_.error()) || !dials_on(now, true))
      check_channel();
    return false;
  }
  if (wanted_ && wanted_->others) wanted_->others->answered("");
  wanted_.reset();
  peer_mac_ = MacAddr::from_u64(info.mac);
  peer_name_ = ipc::text_of(reply.peer);
  local_port_ = static_cast<std::uint16_t>(info.local_port);
  peer_port_ = static_cast<std::uint16_t>(info.remote_port);
  STP_ASSERT(!session_, "a connection is opened once");
  session_.emplace(SequencerConfig::of(info), staging_, endpoint_);
  channel_.lead(session_->sequencer);
  if (reports_.frugal()) session_->eager_in.be_frugal();
  domain_->living_peers().add(peer_mac_);
  domain_->silent_peers().remove(peer_mac_);
  client::station_answers(peer_mac_, now);
  if (state_.advance(Event::kOpened)) handshake_.ask(*session_, now);
  return true;
}

// The peer's first message has arrived.
void Connection::on_hello(const Completion& c) {
  if (c.status != 0) return end(failure(c.status));
  const auto* const hello = handshake_.on_received(*session_, c);
  const bool asks = hello != nullptr && hello->kind == Hello::Kind::kRequest;
  if (hello == nullptr || asks != state_.allows(Event::kRequest)) return end(failure(-EPROTO));
  if (asks) {
    STP_ASSERT(listener_ != nullptr, "a connection that asks came from a listener");
    state_.must(Event::kRequest);
    handshake_.stop_waiting();
    return listener_->requested(shared_from_this());
  }
  if (hello->kind == Hello::Kind::kAccept) return up();
  end({.flushed = -ECONNREFUSED, .event = STM_REFUSED, .status = -ECONNREFUSED});
}

int Connection::accept(Outlets outlets, const Hello& hello) {
  if (!state_.allows(Event::kAccept) && !(over() && !reports_.is_open())) return -EISCONN;
  if (const auto error = set_outlets(std::move(outlets)); error != 0) return error;
  if (over()) {  // it ended before the program decided
    reports_.tell(STM_FAILED, ending_.reason());
    reports_.close();
    return 0;
  }
  if (reports_.frugal()) session_->eager_in.be_frugal();
  decide(Event::kAccept, hello);
  return 0;
}

int Connection::reject(const Hello& hello) {
  if (over()) return 0;
  if (!state_.allows(Event::kReject)) return -EISCONN;
  decide(Event::kReject, hello);
  return 0;
}

void Connection::decide(Event event, const Hello& hello) {
  domain_->mutex().is_held();
  listener_->decided(*this);
  listener_.reset();
  state_.must(event);
  const auto now = domain_->now();
  handshake_.answer(*session_, hello, now);
  progress(now);
}

// The write of this side's first message has completed.
void Connection::hello_sent(int status) {
  if (facts().greeting == Greeting::kRejects) return end({.flushed = -ECANCELED});
  if (status != 0) return end(failure(status));
  if (facts().greeting == Greeting::kAccepts) up();
}

void Connection::up() {
  // The connection may have ended: the peer's answer can be among the completions flushed then.
  if (!state_.advance(Event::kAgreed)) return;
  handshake_.stop_waiting();
  if (reports_.patient()) session_->sequencer.be_patient();
  reports_.tell(STM_CONNECTED, 0);
  if (reports_.frugal())
    session_->eager_out.ask_later();
  else
    session_->eager_out.ask(session_->sequencer);
}

// ---- how it ends: by either program, by the link, or by a timeout ----

int Connection::disconnect(bool abrupt, Farewell why) {
  domain_->mutex().is_held();
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
  domain_->mutex().is_held();
  if (!state_.allows(Event::kDrained)) return;
  if (!operations_.empty()) return confirm_quiet_puts();
  if (session_->eager_in.has_untold()) session_->eager_in.tell(session_->sequencer);
  if (pump(domain_->now())) domain_->backend().rung(0);
  channel_.close(false, to_option(Farewell::kNone));
  state_.must(Event::kDrained);
  ending_.wait(domain_->now());
}

// Ends the connection if its channel had ended at the last look().
void Connection::check_channel() {
  if (seen_ == ChannelState::kConnecting || seen_ == ChannelState::kOpen) return;
  const bool was_up = exchanges_messages() || stage() == ConnectionStage::kClosing;
  int reason = 0;
  if (ask::VcInfo::Reply info{};
      was_up && channel_.state() == ChannelState::kPeerClosed && channel_.query(info) == 0)
    reason = status_of_end(info.facts.option);
  if (const auto over = end_of_channel(seen_, state_.state(), channel_.error(), reason)) end(*over);
}

void Connection::check_time(Time now) {
  domain_->mutex().is_held();
  if (now >= receives_.starved_at())
    return end({.flushed = -ECANCELED, .event = STM_FAILED, .status = -ENOBUFS},
               Farewell::kNoReceive);
  if (now >= std::min(handshake_.deadline(), ending_.deadline())) {
    if (state_.allows(Event::kOpened) && channel_.is_taken() &&
        domain_->living_peers().contains(peer_mac_) && handshake_.is_there(now, now + kSecond))
      return;
    if (dials_on(now, false)) return;
    return end(end_of_patience(state_.state()));
  }
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
  if (ending()) return disconnect(true), true;
  end({.flushed = -ECANCELED, .event = STM_FAILED, .status = -EACCES}, Farewell::kBroken);
  return true;
}

void Connection::abandon() {
  if (facts().greeting == Greeting::kRejects) return;
  end({.flushed = -ECANCELED, .status = -ECANCELED});
  ending_.be_silent();
  go_on_ending();
  if (gone()) reports_.close();
}

void Connection::end(const End& end, Farewell why) {
  domain_->mutex().is_held();
  if (over()) return;
  // Withdraws all grants and stops sending before any memory is given back.
  if (channel_.is_taken()) channel_.close(true, to_option(why));
  domain_->disown(*this);
  domain_->wrong_keys().forget(*this);
  if (session_) domain_->living_peers().remove(peer_mac_);
  if (session_ && seen_ == ChannelState::kFailed && end.status == -ETIMEDOUT)
    domain_->silent_peers().add(peer_mac_, domain_->now());
  if (!session_ && end.status == -ECONNREFUSED) {
    domain_->silent_peers().remove(peer_mac_);
    client::station_answers(peer_mac_, domain_->now());
  }
  state_.must(Event::kOver);
  handshake_.stop_waiting();
  ending_.begin(end);
  domain_->visit(*this);
  go_on_ending();
}

void Connection::go_on_ending() {
  if (!ending() || !channel_.let_go()) return;
  if (ending_.keeps_messages()) on_breach(receives_.match_arrived(*session_).breach);
  if (ending_.flush_once()) flush(ending_.end().flushed);
  if (ending_.keeps_messages() && session_->arrived() != nullptr) return;
  STP_ASSERT(operations_.empty() && !receives_.has_matched(), "all is told before the end is");
  state_.must(Event::kLetGo);
  if (channel_.is_taken()) channel_.leave();
  if (session_)
    if (const auto ring = session_->leave_rings(); ring.base != nullptr)
      domain_->staging().give_back(ring);
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
  take_last();
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

// Takes what arrived before the channel was closed: its sender has been told that it arrived. A
// pool keeps its receives for other connections.
void Connection::take_last() {
  domain_->mutex().is_held();
  if (!session_) return;
  channel_.receive(session_->sequencer, domain_->now());
  Completion c;
  while (session_->sequencer.next_completion(c)) on_completion(c);
  if (reports_.pool() == nullptr) receives_.match_arrived(*session_);
}

}  // namespace stp::managed
