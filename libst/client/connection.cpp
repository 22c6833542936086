// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/connection.h"

#include <cstring>
#include <utility>

#include "libst/client/error.h"
#include "libst/client/trouble.h"
#include "libst/client/wait.h"
#include "libst/service/wire_config.h"
#include "stp/base/assert.h"
#include "stp/wire/tiling.h"

namespace stp::client {

Connection::Connection(std::shared_ptr<Endpoint> endpoint, const Reply& made,
                       std::shared_ptr<SharedMemory> memory)
    : endpoint_(std::move(endpoint)),
      backend_(endpoint_->backend()),
      vc_(made.vc),
      bell_(made.channel),
      peer_(MacAddr::from_u64(made.mac)),
      memory_(std::move(memory)),
      bufsize_(endpoint_->config().bufsize),
      channel_(memory_->data()),
      asked_(made.state == static_cast<std::uint32_t>(VcState::kAsked)) {}

int Connection::wait_open(Time deadline) {
  if (asked_) return learn_peer();
  const auto answered = [this] {
    return channel_.state() != ChannelState::kConnecting || endpoint_->ended();
  };
  const auto waited = wait_until(backend_, channel_, deadline, answered);
  if (waited == -EWOULDBLOCK) return fail_in_time(backend_, peer_);
  if (waited != 0) return waited;
  if (endpoint_->ended()) return -ECANCELED;
  if (channel_.state() == ChannelState::kFailed) return why_over();
  return learn_peer();
}

int Connection::learn_peer() {
  Reply reply{};
  if (const auto error = info(reply); error != 0) return error;
  remote_bufsize_ = reply.remote_bufsize;
  send_stu_log2_ = stu_size_log2(reply.remote_max_stu, reply.local_max_stu, reply.remote_bufsize);
  return 0;
}

int Connection::decide(bool admit, const OptionPayload& option) {
  auto request = request_for(RequestKind::kDecide);
  Reply reply{};
  request.vc = vc_;
  request.admit = admit ? 1 : 0;
  request.option = service::to_wire(option);
  const auto error = backend_.exchange(request, reply);
  if (error == -EISCONN) return fail(error, "the connection has been accepted already");
  if (error == 0) asked_ = false;
  return error;
}

int Connection::info(Reply& reply) const {
  auto request = request_for(RequestKind::kVcInfo);
  request.vc = vc_;
  return backend_.exchange(request, reply);
}

// Returns 0 while the connection can be used, else the reason why it cannot.
int Connection::over() const {
  if (const auto gone = backend_.error(); gone != 0) return gone;
  if (const auto end = end_of_channel(); end != 0) return end;
  return asked_ ? fail(-ENOTCONN, "st_accept_opt or st_reject comes first") : 0;
}

// The same, with a text for st_strerror.
int Connection::why_over() const {
  const auto reason = over();
  return reason == -ETIMEDOUT ? fail_in_time(backend_, peer_) : reason;
}

int Connection::end_of_channel() const {
  switch (channel_.state()) {
    case ChannelState::kConnecting:
    case ChannelState::kOpen:
      return 0;
    case ChannelState::kFailed:
      return channel_.error() < 0 ? channel_.error() : -ECONNABORTED;
    case ChannelState::kPeerClosed:
    case ChannelState::kClosed:
      break;
  }
  return -ENOTCONN;
}

int Connection::take_end() {
  const auto end = end_of_channel();
  return end != 0 && !end_told_.exchange(true) ? end : 0;
}

int Connection::send(const Sending& what) {
  if (const auto error = check(what); error != 0) return error;
  if (const auto reason = why_over(); reason != 0) return reason;
  if (!try_send(what)) {
    bool sent = false;
    const auto waited = wait_until(backend_, channel_, kNever, [&] {
      return ended_ || over() != 0 || (sent = try_send(what));
    });
    if (waited != 0) return waited;
    if (!sent) return ended_ ? -ECANCELED : why_over();
  }
  backend_.kick(bell_);
  return 0;
}

bool Connection::try_send(const Sending& what) {
  std::lock_guard const guard(sending_);
  if (!channel_.writable()) return false;
  auto& entry = channel_.next();
  entry.header = what.header;
  entry.length = what.length;
  entry.bufx = what.bufx;
  entry.offset = what.offset;
  entry.destination_mac = what.destination;
  entry.limited = 0;
  entry.payload_length = 0;
  if (what.payload != nullptr) {
    const auto data = what.header.op() == wire::Op::kData;
    entry.payload_length = static_cast<std::uint8_t>(data ? wire::kAppendSize : wire::kOptionSize);
    std::memcpy(entry.payload, what.payload, entry.payload_length);
  }
  channel_.send_next();
  return true;
}

int Connection::receive(wire::Header& header, void* payload, Time deadline, std::uint64_t* sender) {
  const auto wanted = sender != nullptr ? *sender : kAnyone;
  ReceivedEntry entry;
  int received = 0;
  const auto try_receive = [&] {
    // A program that polls mostly finds nothing: this avoids the lock. Only connectionless
    // endpoints set headers aside.
    if (!endpoint_->connectionless() && !channel_.waiting()) return false;
    std::lock_guard const guard(receiving_);
    received = inbox_.take(channel_, wanted, entry);
    return received != 0;
  };
  if (!try_receive()) {
    // Checks for the end before it reads, so that headers which came before the end are returned
    // before the end is reported.
    const auto waited = wait_until(backend_, channel_, deadline, [&] {
      const bool last = ended_ || over() != 0;
      return try_receive() || last;
    });
    if (waited != 0) return waited;
    if (received == 0) return ended_ ? -ECANCELED : why_over();
  }
  if (received < 0)
    return fail(received, "too many headers of other senders wait: read some with macaddr NULL");
  header = entry.header;
  if (sender != nullptr) *sender = entry.source_mac;
  if (payload != nullptr) std::memcpy(payload, entry.payload, entry.payload_length);
  return entry.payload_length > 0 ? 1 : 0;
}

// ---- flushing ----

int Connection::flush() {
  const auto error = wait_flushed(false);
  if (error != 0) return error;
  std::lock_guard const guard(sending_);
  const auto refused = channel_.refused();
  const auto more = refused - refused_;
  refused_ = refused;
  if (more == 0) return 0;
  const auto over_budget = channel_.over_budget();
  const auto over = over_budget - std::exchange(over_budget_, over_budget);
  if (over != 0)
    return fail(-EDQUOT, std::to_string(over) +
                             " permissions were not given: this user has no window_bytes left "
                             "(stpctl users)");
  return fail(-EIO, std::to_string(more) +
                        " requests could not be sent: they named memory that is no longer "
                        "mapped, or the connection had ended");
}

int Connection::wait_flushed(bool closing) {
  std::uint32_t target = 0;
  {
    std::lock_guard const guard(sending_);
    target = channel_.sent();
  }
  const auto done = [&] { return channel_.done(target); };
  const auto settled = [&] { return done() || over() != 0 || (!closing && ended_); };
  int waited = 0;
  do {
    waited = wait_until(backend_, channel_, kNever, settled);
  } while (closing && waited == -EINTR);
  if (waited != 0) return waited;
  if (done()) return 0;
  if (ended_ && !closing) return -ECANCELED;
  // The connection has ended, but frames on their way out may still refer to the memory.
  if (backend_.error() == 0) wait_until(backend_, channel_, now() + kClosePatience, done);
  return why_over();
}

// ---- the end ----

int Connection::begin_close() {
  STP_ASSERT(!ended_, "a connection is closed once");
  ended_ = true;
  wake_all(*channel_.wake_word());
  const auto flushed = wait_flushed(true);
  forget();
  return disconnect(flushed != 0);
}

void Connection::forget() {
  endpoint_->forget(handle_);
  endpoint_->mappings().remove_mx_of(vc_);
}

void Connection::end_close(Time deadline) {
  const auto gone = [this] {
    const auto state = channel_.state();
    return state == ChannelState::kClosed || state == ChannelState::kFailed;
  };
  while (wait_until(backend_, channel_, deadline, gone) == -EINTR) {
  }
}

int Connection::disconnect(bool at_once) {
  auto request = request_for(RequestKind::kClose);
  Reply reply{};
  request.vc = vc_;
  request.at_once = at_once ? 1 : 0;
  return backend_.exchange(request, reply);
}

void Connection::abandon() {
  disconnect(true);
}

int Connection::free_mx(std::uint16_t mx) {
  if (!endpoint_->mappings().owns_mx(vc_, mx))
    return fail(-ERANGE, "Mx " + std::to_string(mx) + " does not belong to this connection");
  auto request = request_for(RequestKind::kFreeMx);
  Reply reply{};
  request.endpoint = endpoint_->id();
  request.mx = mx;
  const auto error = backend_.exchange(request, reply);
  endpoint_->mappings().remove_mx(mx);
  return error;
}

}  // namespace stp::client
