// SPDX-License-Identifier: BSD-3-Clause
// Establishes a connection: a Virtual Connection, then a request and its answer as the first
// messages.
#include <algorithm>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "stp/base/assert.h"
#include "stp/wire/tiling.h"

namespace stp::managed {
namespace {

// Timeout for the request on a new Virtual Connection.
constexpr Time kRequestPatience = 10 * kSecond;
// Timeout for the delivery of an answer. The peer's program may have to wait for a core.
constexpr Time kAcceptPatience = 30 * kSecond;
// Limit for an answer as a whole, after stm_accept() or stm_reject(). Frames of the peer's layer
// restart kAcceptPatience, but not this.
constexpr Time kDecisionPatience = 45 * kSecond;

}  // namespace

void Connection::take_channel(EndpointId endpoint, const client::Reply& made,
                              std::shared_ptr<service::SharedMemory> memory,
                              const Staging& staging) {
  STP_ASSERT(vc_ == kNoneId && !sequencer_, "a connection takes a channel once");
  STP_ASSERT(state_ == State::kConnecting || state_ == State::kExpected,
             "a channel is taken to connect, or came from a listener");
  endpoint_ = endpoint;
  vc_ = made.vc;
  bell_ = made.channel;
  channel_memory_ = std::move(memory);
  channel_ = UserChannel(channel_memory_->data());
  channel_.gather();
  staging_ = staging;
  look();
  domain_->activate(shared_from_this());
}

void Connection::connect(EndpointId endpoint, const client::Reply& made,
                         std::shared_ptr<service::SharedMemory> memory, const Staging& staging,
                         Hello hello, Time deadline) {
  hello_ = std::move(hello);
  wait_until_ = deadline;
  state_.must(Event::kConnect);
  take_channel(endpoint, made, std::move(memory), staging);
}

void Connection::expect(std::shared_ptr<Listener> listener, EndpointId endpoint,
                        const client::Reply& made, std::shared_ptr<service::SharedMemory> memory,
                        const Staging& staging) {
  listener_ = std::move(listener);
  peer_mac_ = MacAddr::from_u64(made.mac);
  wait_until_ = domain_->now() + kRequestPatience;
  state_.must(Event::kExpect);
  take_channel(endpoint, made, std::move(memory), staging);
}

// Called once the Virtual Connection is open or has failed. Returns false if it failed.
bool Connection::opened(Time now) {
  auto request = client::request_for(client::RequestKind::kVcInfo);
  request.vc = vc_;
  client::Reply info{};
  if (channel_.state() == ChannelState::kOpen)
    if (const auto error = domain_->backend().exchange(request, info); error != 0) {
      end(error, STM_FAILED, error);
      return false;
    }
  if (channel_.state() != ChannelState::kOpen) {
    check_end(channel_.state());
    return false;
  }
  peer_mac_ = MacAddr::from_u64(info.mac);
  local_port_ = static_cast<std::uint16_t>(info.local_port);
  peer_port_ = static_cast<std::uint16_t>(info.remote_port);
  SequencerConfig config;
  config.local_bufsize = info.local_bufsize;
  config.remote_bufsize = info.remote_bufsize;
  config.remote_slots = info.remote_slots;
  config.send_stu_log2 =
      stu_size_log2(info.remote_max_stu, info.local_max_stu, info.remote_bufsize);
  config.receive_stu_log2 =
      stu_size_log2(info.local_max_stu, info.remote_max_stu, info.local_bufsize);
  STP_ASSERT(!sequencer_, "a connection is opened once");
  sequencer_.emplace(config);
  if (state_ == State::kConnecting) {
    state_.must(Event::kOpened);
    say_hello(hello_, now);
  }
  return true;
}

void Connection::say_hello(const Hello& hello, Time now) {
  sequencer_->expire(now);
  auto* const out = staging_.hello_out();
  const auto length = encode(hello, out);
  // The side that asks for the connection sets the timeout.
  WriteOptions options;
  options.patience =
      state_ == State::kAsking ? wait_until_ - std::min(wait_until_, now) : kAcceptPatience;
  sequencer_->write(kHelloOut, staging_.memory->at(out), length, options);
}

// The peer's first message has arrived.
void Connection::on_hello(const Completion& c) {
  hello_landing_ = false;
  Hello hello;
  if (c.status != 0) return end(c.status, STM_FAILED, c.status);
  const bool legal = decode({staging_.hello_in(), static_cast<std::size_t>(c.length)}, hello);
  const bool asked = legal && hello.kind == Hello::Kind::kRequest;
  if (!legal || asked != (state_ == State::kExpected)) return end(-EPROTO, STM_FAILED, -EPROTO);
  private_data_ = std::move(hello.private_data);
  if (!asked) return on_answer(hello);
  STP_ASSERT(listener_ != nullptr, "a connection that asks came from a listener");
  state_.must(Event::kRequest);
  wait_until_ = kNever;
  listener_->requested(shared_from_this());
}

void Connection::on_answer(const Hello& hello) {
  if (hello.kind == Hello::Kind::kAccept) return up();
  end(-ECONNREFUSED, STM_REFUSED, -ECONNREFUSED);
}

int Connection::accept(Outlets outlets, Hello hello) {
  if (state_ != State::kRequested && !(over() && !outlets_.events)) return -EISCONN;
  if (const auto error = set_outlets(std::move(outlets)); error != 0) return error;
  if (over()) {  // it ended before the program decided
    tell(STM_FAILED, reason_);
    release_outlets();
    return 0;
  }
  listener_->decided(*this);
  listener_.reset();
  state_.must(Event::kAccept);
  const auto now = domain_->now();
  wait_until_ = now + kDecisionPatience;
  say_hello(hello, now);
  progress(now);
  return 0;
}

int Connection::reject(Hello hello) {
  if (over()) return 0;
  if (state_ != State::kRequested) return -EISCONN;
  listener_->decided(*this);
  listener_.reset();
  state_.must(Event::kReject);
  const auto now = domain_->now();
  wait_until_ = now + kDecisionPatience;
  say_hello(hello, now);
  progress(now);
  return 0;
}

// The write of this side's first message has completed.
void Connection::hello_sent(int status) {
  if (state_ == State::kRejecting) return end(-ECANCELED, 0, 0);
  if (status != 0) return end(status, STM_FAILED, status);
  if (state_ == State::kAccepting) up();
}

void Connection::up() {
  // The connection may have ended: the peer's answer can be among the completions flushed then.
  if (!state_.advance(Event::kAgreed)) return;
  wait_until_ = kNever;
  tell(STM_CONNECTED, 0);
  open_eager();
}

}  // namespace stp::managed
