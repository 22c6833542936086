// SPDX-License-Identifier: BSD-3-Clause
// How a connection opens: a Virtual Connection, then a request and its answer as the first
// messages.
#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "libst/service/text_field.h"
#include "stp/base/assert.h"
#include "stp/wire/tiling.h"

namespace stp::managed {

void Connection::take_channel(EndpointId endpoint, const client::Reply& made,
                              std::shared_ptr<service::SharedMemory> memory,
                              const Staging& staging) {
  STP_ASSERT(!session_ && (state_ == State::kConnecting || state_ == State::kExpected),
             "a channel is taken to connect, or came from a listener");
  endpoint_ = endpoint;
  staging_ = staging;
  channel_.take(made, std::move(memory));
  look();
  domain_->activate(shared_from_this());
}

void Connection::connect(EndpointId endpoint, const client::Reply& made,
                         std::shared_ptr<service::SharedMemory> memory, const Staging& staging,
                         Hello hello, Time deadline) {
  peer_mac_ = MacAddr::from_u64(made.mac);
  handshake_.connect(std::move(hello), deadline);
  state_.must(Event::kConnect);
  take_channel(endpoint, made, std::move(memory), staging);
}

void Connection::expect(std::shared_ptr<Listener> listener, EndpointId endpoint,
                        const client::Reply& made, std::shared_ptr<service::SharedMemory> memory,
                        const Staging& staging) {
  listener_ = std::move(listener);
  peer_mac_ = MacAddr::from_u64(made.mac);
  handshake_.expect(domain_->now());
  state_.must(Event::kExpect);
  take_channel(endpoint, made, std::move(memory), staging);
}

// Called once the Virtual Connection is open or has failed. Returns false if it failed.
bool Connection::opened(Time now) {
  client::Reply info{};
  if (channel_.state() == ChannelState::kOpen)
    if (const auto error = channel_.query(info); error != 0) {
      end(failure(error));
      return false;
    }
  seen_ = channel_.state();
  if (seen_ != ChannelState::kOpen) {
    check_channel();
    return false;
  }
  peer_mac_ = MacAddr::from_u64(info.mac);
  peer_name_ = service::text_of(info.text);
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
  STP_ASSERT(!session_, "a connection is opened once");
  session_.emplace(config, staging_, endpoint_);
  if (state_ == State::kConnecting) {
    state_.must(Event::kOpened);
    handshake_.ask(*session_, now);
  }
  return true;
}

// The peer's first message has arrived.
void Connection::on_hello(const Completion& c) {
  if (c.status != 0) return end(failure(c.status));
  const auto* const hello = handshake_.on_received(*session_, c);
  const bool asks = hello != nullptr && hello->kind == Hello::Kind::kRequest;
  if (hello == nullptr || asks != (state_ == State::kExpected)) return end(failure(-EPROTO));
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
  if (state_ != State::kRequested && !(over() && !reports_.is_open())) return -EISCONN;
  if (const auto error = set_outlets(std::move(outlets)); error != 0) return error;
  if (over()) {  // it ended before the program decided
    reports_.tell(STM_FAILED, ending_.reason());
    reports_.close();
    return 0;
  }
  decide(Event::kAccept, hello);
  return 0;
}

int Connection::reject(const Hello& hello) {
  if (over()) return 0;
  if (state_ != State::kRequested) return -EISCONN;
  decide(Event::kReject, hello);
  return 0;
}

void Connection::decide(Event event, const Hello& hello) {
  listener_->decided(*this);
  listener_.reset();
  state_.must(event);
  const auto now = domain_->now();
  handshake_.answer(*session_, hello, now);
  progress(now);
}

// The write of this side's first message has completed.
void Connection::hello_sent(int status) {
  if (state_ == State::kRejecting) return end({.flushed = -ECANCELED});
  if (status != 0) return end(failure(status));
  if (state_ == State::kAccepting) up();
}

void Connection::up() {
  // The connection may have ended: the peer's answer can be among the completions flushed then.
  if (!state_.advance(Event::kAgreed)) return;
  handshake_.stop_waiting();
  reports_.tell(STM_CONNECTED, 0);
  EagerOut::ask(session_->sequencer);
}

}  // namespace stp::managed
