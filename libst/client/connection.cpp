// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/connection.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "libst/client/answers.h"
#include "libst/client/error.h"
#include "libst/client/links.h"
#include "libst/client/wait.h"
#include "libst/include/stp/st.h"
#include "libst/ipc/requests.h"
#include "stp/base/assert.h"
#include "stp/node/inbound/inbound.h"
#include "stp/wire/syntax.h"
#include "stp/wire/tiling.h"

namespace stp::client {

int Inbox::take(UserChannel& channel, std::uint64_t sender, ReceivedEntry& out) {
  const auto wanted = [sender](const ReceivedEntry& entry) {
    return sender == kAnyone || entry.source_mac == sender;
  };
  if (const auto at = std::find_if(aside_.begin(), aside_.end(), wanted); at != aside_.end()) {
    out = *at;
    aside_.erase(at);
    return 1;
  }
  // Takes headers out of the queue up to the wanted one; if there is none, it takes out all of
  // them, because headers that find the queue full are dropped.
  for (; aside_.size() < kMostAside; aside_.push_back(out)) {
    if (!channel.receive(out)) return 0;
    if (wanted(out)) return 1;
  }
  if (sender == kAnyone) return channel.receive(out) ? 1 : 0;
  return channel.readable() ? -ENOBUFS : 0;
}

// The checks of st_tx and st_utx in the caller's thread. The Node checks every request again.

namespace {

using wire::Op;

bool is_connection_op(Op op) {
  return op == Op::kRequestConnection || op == Op::kConnectionAnswer ||
         op == Op::kRequestDisconnect || op == Op::kDisconnectAnswer ||
         op == Op::kDisconnectComplete;
}

// protocol: 7.17
constexpr std::uint32_t kOperand = sizeof(std::uint64_t);
bool is_fetch(const wire::Header& header) {
  return header.op() == Op::kGet && header.has(wire::flag::kFunction) &&
         header.function() != wire::Function::kFetchOpComplete;
}

// Ignores what the program does not set: s_port, and the flags Append and Last of DATA. No other
// field of DATA can be wrong, so DATA is checked without a copy of the header: copying one that has
// just been written is slow.
DropReason wrong_in(const wire::Header& header) {
  constexpr unsigned kOwn = wire::flag::kAppend | wire::flag::kLast;
  const bool is_data = header.op() == Op::kData;
  wire::Header checked{};
  checked.op_flags = static_cast<std::uint16_t>(header.op_flags & ~(is_data ? kOwn : 0U));
  const auto wrong = wire::check_op(checked);
  if (is_data || wrong != DropReason::kNone) return wrong;
  checked = header;
  checked.s_port = 1;
  return wire::check_fields(checked);
}

int check_syntax(const wire::Header& header) {
  const auto wrong = wrong_in(header);
  if (wrong == DropReason::kNone) return 0;
  return fail(-EINVAL, "the header is invalid: " + std::string(name_of(wrong)));
}

}  // namespace

int Connection::check(const Sending& what) const {
  const auto& header = what.header;
  if (is_connection_op(header.op()))
    return fail(-EPERM, "only st_connect, st_accept and st_close send connection operations");
  if (endpoint_->connectionless())
    if (const auto error = check_destination(what); error != 0) return error;
  if (const auto error = check_syntax(header); error != 0) return error;
  if (header.op() == Op::kData) return check_data(what);
  if (what.length != 0)
    return fail(-EINVAL,
                "len is " + std::to_string(what.length) + ": it must be 0 for all but DATA");
  if (is_fetch(header) && !header.has(wire::flag::kReject) &&
      (header.param != kOperand || header.offset % kOperand != 0 || header.b_num % kOperand != 0))
    return fail(-EINVAL, "a FetchOp must be of 8 bytes, and r_offset and i_offset multiples of 8");
  if (wire::needs_operands(header) && what.payload == nullptr)
    return fail(-EINVAL, "opt_pay is NULL: this function needs its operands there");
  const bool grants = header.op() == Op::kClearToSend || header.op() == Op::kMemoryRegionAvailable;
  if (!grants || header.has(wire::flag::kReject)) return 0;
  if (header.offset >> bufsize_ == 0 &&
      endpoint_->mappings().can_grant(vc_, header.mx, header.bufx))
    return 0;
  return fail(-ERANGE, "Mx " + std::to_string(header.mx) + ", Bufx " + std::to_string(header.bufx) +
                           ", Offset " + std::to_string(header.offset) +
                           " is not memory of this connection");
}

int Connection::check_destination(const Sending& what) {
  const auto mac = MacAddr::from_u64(what.destination);
  if (mac.to_u64() != what.destination || mac.is_zero() || mac.is_group())
    return fail(-EINVAL, "macaddr must be the address of one station: use st_macaddr");
  if (what.header.d_port == 0) return fail(-EINVAL, "d_port must be non-zero");
  return 0;
}

int Connection::check_data(const Sending& what) const {
  if (what.offset >> bufsize_ != 0)
    return fail(-ERANGE, "the offset is beyond the end of its buffer");
  if (what.length != 0 &&
      !endpoint_->mappings().can_send(what.bufx, what.offset, what.length, bufsize_))
    return fail(-ERANGE, "no transmit memory is mapped there");
  const auto& header = what.header;
  if (header.offset >> remote_bufsize_ != 0)
    return fail(-ERANGE, "the destination's Offset is beyond the end of its buffer");
  const auto at = Address{header.bufx, header.offset}.linear(remote_bufsize_);
  if (stu_count(at, what.length, send_stu_log2_) > Inbound::kMaxStusOfBlock)
    return fail(-EINVAL, "len is " + std::to_string(what.length) + ": a Block has at most " +
                             std::to_string(Inbound::kMaxStusOfBlock) + " STUs of " +
                             std::to_string(std::uint64_t{1} << send_stu_log2_) + " bytes");
  return 0;
}

Connection::Connection(std::shared_ptr<Endpoint> endpoint, const GivenChannel& given,
                       std::uint64_t peer, bool asked, std::shared_ptr<SharedMemory> memory)
    : endpoint_(std::move(endpoint)),
      backend_(endpoint_->backend()),
      vc_(given.vc),
      bell_(given.bell),
      peer_(MacAddr::from_u64(peer)),
      memory_(std::move(memory)),
      bufsize_(endpoint_->config().bufsize),
      channel_(memory_->data()),
      asked_(asked) {}

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
  VcFacts facts{};
  if (const auto error = info(facts); error != 0) return error;
  remote_bufsize_ = facts.remote_bufsize;
  send_stu_log2_ = stu_size_log2(facts.remote_max_stu, facts.local_max_stu, facts.remote_bufsize);
  if (!peer_.is_zero()) station_answers(peer_, now());
  return 0;
}

int Connection::decide(bool admit, const OptionPayload& option) {
  const auto error = backend_.call(
      ask::Decide{.vc = vc_, .admit = admit ? 1U : 0U, .option = ipc::to_wire(option)});
  if (error == -EISCONN) return fail(error, "the connection has been accepted already");
  if (error == 0) asked_ = false;
  return error;
}

int Connection::info(VcFacts& out) const {
  ask::VcInfo::Reply reply{};
  const auto error = backend_.call(ask::VcInfo{.vc = vc_}, reply);
  if (error == 0) out = reply.facts;
  return error;
}

namespace {

[[gnu::noinline]] int not_decided() {
  return fail(-ENOTCONN, "st_accept_opt or st_reject comes first");
}

}  // namespace

// Returns 0 while the connection can be used, else the reason why it cannot.
int Connection::over() const {
  if (const auto gone = backend_.error(); gone != 0) return gone;
  if (const auto end = end_of_channel(); end != 0) return end;
  return asked_ ? not_decided() : 0;
}

// The same, with a text for st_strerror.
int Connection::why_over() const {
  if (const auto gone = backend_.gone(); gone != 0) return gone;
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
  if (over() != 0)  // it may be accepted meanwhile
    if (const auto error = why_over(); error != 0) return error;
  if (!try_send(what)) return send_later(what);
  backend_.kick(bell_);
  return 0;
}

// There was no room. Takes a copy, so that what is sent at once need not be in memory at all.
int Connection::send_later(Sending what) {
  bool sent = false;
  const auto waited = wait_until(backend_, channel_, kNever,
                                 [&] { return ended_ || over() != 0 || (sent = try_send(what)); });
  if (waited != 0) return waited;
  if (!sent) {
    if (ended_) return -ECANCELED;
    const auto error = why_over();
    return error != 0 ? error : send(what);  // it was accepted meanwhile
  }
  backend_.kick(bell_);
  return 0;
}

bool Connection::try_send(const Sending& what) {
  const Lock guard(sending_);
  auto* const place = channel_.next();
  if (place == nullptr) return false;
  auto& entry = *place;
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

// Whoever waits less polls, and gets no text that costs a question.
constexpr Time kLongWait = kSecond;

int Connection::receive(wire::Header& header, void* payload, Time deadline, std::uint64_t* sender) {
  const auto wanted = sender != nullptr ? *sender : kAnyone;
  ReceivedEntry entry;
  int received = 0;
  const auto try_receive = [&] {
    // A program that polls mostly finds nothing: this avoids the lock. Only connectionless
    // endpoints set headers aside.
    if (!endpoint_->connectionless() && !channel_.waiting()) return false;
    const Lock guard(receiving_);
    received = inbox_.take(channel_, wanted, entry);
    return received != 0;
  };
  if (!try_receive()) {
    // Checks for the end before it reads, so that headers which came before the end are returned
    // before the end is reported.
    const Time began = deadline == 0 ? 0 : now();
    const auto waited = wait_until(backend_, channel_, deadline, [&] {
      const bool last = ended_ || over() != 0;
      return try_receive() || last;
    });
    if (waited == -EWOULDBLOCK && deadline != 0 && now() - began >= kLongWait)
      return fail_by_link(backend_, peer_, waited, "nothing has come in time");
    if (waited != 0) return waited;
    if (received == 0) {
      if (ended_) return -ECANCELED;
      if (const auto error = why_over(); error != 0) return error;
      return receive(header, payload, deadline, sender);  // it was accepted meanwhile
    }
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
  return error != 0 ? error : unsent();
}

// What the link has refused since the last call.
int Connection::unsent() {
  const Lock guard(sending_);
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
    const Lock guard(sending_);
    target = channel_.sent();
  }
  const auto done = [&] { return channel_.done(target); };
  const auto settled = [&] { return done() || over() != 0 || (!closing && ended_); };
  if (const auto waited = wait_until(backend_, channel_, kNever, settled); waited != 0)
    return waited;
  if (done()) return 0;
  if (ended_ && !closing) return -ECANCELED;
  // The connection has ended, but frames on their way out may still refer to the memory.
  if (backend_.error() == 0) wait_until(backend_, channel_, now() + kClosePatience, done);
  return why_over();
}

// ---- the end ----

int Connection::begin_close(int& sent) {
  if (ended_.exchange(true)) return -EBADF;
  wake_all(*channel_.wake_word());
  sent = wait_flushed(true);
  if (sent == -EINTR) return go_on(), -EINTR;
  if (sent == 0) sent = unsent();
  return 0;
}

bool Connection::goes_with_endpoint() {
  return endpoint_->ended() && !ended_.exchange(true);
}

int Connection::close(bool at_once) {
  STP_ASSERT(ended_, "what is closed has been flushed");
  forget();
  return disconnect(at_once);
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
  return backend_.call(ask::Close{.vc = vc_, .at_once = at_once ? 1U : 0U, .option = {}});
}

void Connection::abandon() {
  disconnect(true);
}

int Connection::free_mx(std::uint16_t mx) {
  if (!endpoint_->mappings().owns_mx(vc_, mx))
    return fail(-ERANGE, "Mx " + std::to_string(mx) + " does not belong to this connection");
  const auto error =
      backend_.call(ask::FreeMx{.endpoint = endpoint_->id(), .mx = mx, .reserved = 0});
  endpoint_->mappings().remove_mx(mx);
  return error;
}

// Endpoints of st_endpoint (libst document, section 8). The Port belongs to the endpoint as a
// connection does, and ends with it. The first call that needs the Port opens it, because options
// can be set until then.

int Endpoint::not_connectionless() const {
  return connectionless_ ? 0
                         : fail(-EOPNOTSUPP,
                                "st_create made this endpoint: st_utx and st_urx need one of "
                                "st_endpoint");
}

int Endpoint::open_port(Handle& out) {
  if (const auto error = not_connectionless(); error != 0) return error;
  if ((out = port_.load(std::memory_order_acquire)) != 0) return 0;
  const Lock one_at_a_time(opening_);
  if ((out = port_.load(std::memory_order_acquire)) != 0) return 0;
  ask::OpenPort::Reply made{};
  Payload payload;
  auto error = backend_->call(ask::OpenPort{.endpoint = id_}, made, payload);
  if (error == -EADDRINUSE)
    return fail(error, "Port " + std::to_string(config().port) + " of this link is in use");
  if (error != 0) return error;
  const auto port = std::make_shared<Connection>(shared_from_this(), made.channel, std::uint64_t{0},
                                                 false, std::move(payload.memory));
  error = port->wait_open(kNever);
  if (error != 0) port->abandon();
  if (error == 0) error = hand_out(port, out);
  if (error == 0) port_.store(out, std::memory_order_release);
  return error;
}

// Port and Key are known once the Port is open, so asking for them opens it. From then on peers
// that the program tells them can reach it.
int Endpoint::get_connectionless(const OptionRule& rule, std::uint32_t& value) {
  const bool name = rule.option == ST_OPT_PORT_LOCAL || rule.option == ST_OPT_KEY_LOCAL;
  value = get_option(rule);
  if (rule.option == ST_OPT_MAXSTU_LOCAL) value = std::min(value, backend_->max_stu());
  if (!name) return 0;
  Handle port = 0;
  if (const auto error = open_port(port); error != 0) return error;
  const auto open = find<Connection>(port);
  if (!open) return -ECANCELED;
  VcFacts facts{};
  if (const auto error = open->info(facts); error != 0) return error;
  value = facts.*rule.connection;
  return 0;
}

// ---- the calls: data transfer over connections and the connectionless model (libst document,
// sections 5.2, 10 and 11) ----

static_assert(sizeof(st_header_t) == wire::kHeaderSize);
static_assert(ST_APPEND_SIZE == wire::kAppendSize && ST_OPTION_SIZE == wire::kOptionSize);

}  // namespace stp::client

using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::fail;
using stp::client::find;
using stp::client::guarded_per_frame;
using stp::client::Handle;
using stp::client::not_set;

namespace {

// Field by field, as the program has just written some of them: a longer load that covers several
// would wait until the processor has stored them, and the compiler joins what it may join.
template <typename Integer>
Integer load_field(const Integer& field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}
stp::wire::Header header_of(const st_header_t& h) {
  static_assert(offsetof(st_header_t, s_id) == offsetof(stp::wire::Header, s_id));
  return {.op_flags = load_field(h.op_flags),
          .param = load_field(h.param),
          .d_port = load_field(h.d_port),
          .s_port = load_field(h.s_port),
          .d_key = load_field(h.d_key),
          .cksum = load_field(h.cksum),
          .mx = load_field(h.mx),
          .bufx = load_field(h.bufx),
          .offset = load_field(h.offset),
          .sync = load_field(h.sync),
          .b_num = load_field(h.b_num),
          .d_id = load_field(h.d_id),
          .s_id = load_field(h.s_id)};
}

// Converts the arguments of st_tx and st_utx. Returns 0 or -EINVAL.
inline int sending_of(const st_header_t* hdr, const void* opt_pay, int len, int bufx, int off,
                      Connection::Sending& out) {
  if (hdr == nullptr) return not_set("hdr");
  if (len < 0 || off < 0) return fail(-EINVAL, "len and off must not be negative");
  out.header = header_of(*hdr);
  out.payload = opt_pay;
  out.length = static_cast<std::uint32_t>(len);
  out.bufx = static_cast<std::uint32_t>(bufx);
  out.offset = static_cast<std::uint32_t>(off);
  return 0;
}

// Does something with the Port of an endpoint.
template <typename Use>
int with_port(void* ehandle, Use&& use) {
  const auto endpoint = find<Endpoint>(ehandle);
  if (!endpoint) return -EBADF;
  Handle handle = 0;
  if (const auto error = endpoint->open_port(handle); error != 0) return error;
  const auto port = find<Connection>(handle);
  return port ? use(*port) : -ECANCELED;
}

}  // namespace

// Runs once per frame, so it is one function.
[[gnu::flatten]] int st_tx(void* chandle, st_header_t* hdr, void* opt_pay, int len, int bufx,
                           int off) {
  return guarded_per_frame([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    Connection::Sending what;
    const auto error = sending_of(hdr, opt_pay, len, bufx, off, what);
    return error != 0 ? error : connection->send(what);
  });
}

int st_rx(void* chandle, st_header_t* hdr, void* opt_pay, struct timeval* timeout) {
  return guarded_per_frame([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    if (hdr == nullptr) return not_set("hdr");
    stp::Time deadline = 0;
    if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
    stp::wire::Header header;
    const auto result = connection->receive(header, opt_pay, deadline);
    if (result >= 0) *hdr = std::bit_cast<st_header_t>(header);
    return result;
  });
}

int st_flush(void* handle) {
  return guarded_per_frame([&] {
    if (const auto connection = find<Connection>(handle); connection) return connection->flush();
    const auto endpoint = find<Endpoint>(handle);
    return endpoint ? endpoint->flush() : -EBADF;
  });
}

int st_utx(void* ehandle, st_macaddr_t macaddr, st_header_t* hdr, void* opt_pay, int len, int bufx,
           int off) {
  return guarded_per_frame([&] {
    return with_port(ehandle, [&](Connection& port) {
      Connection::Sending what;
      const auto error = sending_of(hdr, opt_pay, len, bufx, off, what);
      what.destination = macaddr;
      return error != 0 ? error : port.send(what);
    });
  });
}

int st_urx(void* ehandle, st_macaddr_t* macaddr, st_header_t* hdr, void* opt_pay,
           struct timeval* timeout) {
  return guarded_per_frame([&] {
    return with_port(ehandle, [&](Connection& port) {
      if (hdr == nullptr) return not_set("hdr");
      stp::Time deadline = 0;
      if (const auto error = stp::client::deadline_of(timeout, deadline); error != 0) return error;
      stp::wire::Header header;
      const auto result = port.receive(header, opt_pay, deadline, macaddr);
      if (result >= 0) *hdr = std::bit_cast<st_header_t>(header);
      return result;
    });
  });
}
