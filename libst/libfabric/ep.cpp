// SPDX-License-Identifier: BSD-3-Clause
// An endpoint of FI_EP_MSG that is a connection: its operations, its connection, its messages. And
// shared receive contexts.
#include "libst/libfabric/ep.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

Ep::Ep(Domain& domain, const fi_info& info, void* context)
    : AnyEndpoint(domain, info, kMsgOffer, nullptr, context),
      SendingConnection(static_cast<AnyEndpoint&>(*this)) {
  peer_ = address_or_any(info.dest_addr, info.dest_addrlen);
}

int Ep::open(Domain& domain, const fi_info& info, void* context, fid_ep*& out) {
  if (info.ep_attr == nullptr || info.ep_attr->type != FI_EP_MSG) return -FI_EINVAL;
  if (const auto error = check_sizes(info); error != 0) return error;
  const LinkLock lock(domain.link().mutex());
  std::unique_ptr<Connreq> request;
  std::optional<Address> name;
  if (info.handle != nullptr && !domain.link().has_handle(info.handle)) return -FI_EINVAL;
  if (const auto* const pep = Pep::of(info.handle); pep != nullptr) {
    if (const auto error = pep->lend_name(domain.link(), name.emplace()); error != 0) return error;
  } else if (info.handle != nullptr) {
    request = take_request(info.handle);
    if (!request || request->connection == nullptr) return -FI_EINVAL;
  }
  std::unique_ptr<Ep> ep(new Ep(domain, info, context));
  ep->request_ = std::move(request);
  if (name) ep->name_ = *name;
  out = ep.release();
  return 0;
}

void Ep::end_connections(LinkLock& lock) {
  link_.dialers().stop(lock, *this);
  if (request_) stm_reject(request_->connection, nullptr, 0);
  Connection::close();
  link_.drain();
  ended(-ECANCELED);
  held_.clear();
  inbox().drop(*this);
  if (block_) link_.give_back(std::move(block_));
  link_.stop_awaiting(*this);
  if (srx_ != nullptr) srx_->unuse(*this);
  link_.stop_watching(*this);
}

bool Ep::lingers() const {
  const auto connected = (state_ == State::kUp || state_ == State::kShutDown) && !ended_;
  return connected && (injected_ != 0 || is_sending());
}

int Ep::bind_other(fid_t other, std::uint64_t) {
  if (other->fclass != FI_CLASS_SRX_CTX || srx_ != nullptr) return -FI_EINVAL;
  srx_ = &object_of<Srx, fid_ep>(other);
  srx_->use(*this);
  rx_size_ = srx_->rx_size();
  return 0;
}

int Ep::enable() {
  if (eq_ == nullptr) return -FI_ENOEQ;
  if (!reports_.has_queue()) return -FI_ENOCQ;
  if (srx_ == nullptr) reports_.own_receives();
  enabled_ = true;
  return 0;
}

int Ep::get_option(int name, void* value, std::size_t* length) {
  return name == FI_OPT_CM_DATA_SIZE ? tell_option(kCmData, value, length) : -FI_ENOPROTOOPT;
}

// ---- operations ----

int Ep::way_to(fi_addr_t, SendingConnection*& way) {
  way = this;
  return is_up() ? 0 : -FI_ENOTCONN;
}

void Ep::tell_of(const Op& write, std::byte* note) const {
  store64(note, write.length);
  store64(note + 8, write.data);
}

int Ep::post(Op& op) {
  op.owner = this;
  return begin_access(op);
}

void Ep::part_done(Op& op, int status) {
  if (&op == &at_once_) {
    Outcome lost;
    lost.status = status;
    lost.injected = true;
    return reports_.complete(lost);
  }
  if (!end_part(op, status)) return end_if_told();
  if (op.direction == Direction::kReceive) return has_read(op);
  if (op.direction != Direction::kSend) return finish(op);
  // In the order of posting, as layers such as ofi_rxm take for granted.
  while (!sends_.empty() && sends_.front()->parts == 0) {
    auto& first = *sends_.front();
    sends_.pop_front();
    finish(first);
  }
}

int Ep::send_note(Op& op) {
  return send_part(op, MessageKind::kWritten, op.note, kAnnouncement);
}

void Ep::look_again() {
  SendingConnection::look_again();
  end_if_told();
  if (waits_to_read_ != nullptr && link_.may_have_memory(lack_))
    begin_to_read(*std::exchange(waits_to_read_, nullptr));
  take_held();
  if (waits_to_read_ != nullptr || holds_written()) link_.await(*this);
}

void Ep::end_if_told() {
  if (state_ == State::kShutDown && !owes_notes()) stm_disconnect(connection_, STM_GRACEFUL);
}

void Ep::has_read(Op& op) {
  is_announced_ = false;
  link_.stop_watching(*this);
  received(op);
  take_held();
}

void Ep::take_held() {
  if (std::exchange(takes_held_, true)) return;  // one of them could not be read: it goes on there
  while (!held_.empty() && may_take(held_.front().kind)) {
    const auto next = held_.front();
    held_.pop_front();
    take(next);
  }
  takes_held_ = false;
}

// ---- how it is connected, and how that ends ----

int Ep::get_name(void* address, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  return tell_address(link_.at_present(name_, format_), format_, address, length);
}

int Ep::get_peer(void* address, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  return is_up() ? tell_address(peer_, format_, address, length) : -FI_ENOTCONN;
}

int Ep::prepare(std::unique_ptr<RxBlock>& block) {
  if (has_begun()) return -FI_EOPBADSTATE;
  if (!enabled_)
    if (const auto error = enable(); error != 0) return error;
  const auto error = link_.take_block(parameters().rx_buffers, block);
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "buffers for messages", error);
}

void Ep::use_block(std::unique_ptr<RxBlock> block) {
  block_ = std::move(block);
  for (auto& buffer : block_->buffers) {
    buffer.owner = this;
    lend(buffer);
  }
}

int Ep::connect(const void* address, const void* data, std::size_t length) {
  const LinkLock lock(link_.mutex());
  if (request_) return -FI_EOPBADSTATE;
  if (length > kCmData || (data == nullptr && length != 0)) return -FI_EINVAL;
  if (address != nullptr && !read_address(address, kByFamily, peer_)) return -FI_EINVAL;
  if (peer_.port == 0) return -FI_EINVAL;
  std::unique_ptr<RxBlock> block;
  if (const auto error = prepare(block); error != 0) return error;
  try {
    const auto error = dial(peer_, pack_request(link_.at_present(name_, format_), data, length));
    if (error != 0) {
      link_.give_back(std::move(block));
      return explain(FI_LOG_EP_CTRL, "a connection", error);
    }
  } catch (...) {  // as if it had not been called: there is no thread that connects, or no memory
    Connection::close();
    link_.give_back(std::move(block));
    throw;
  }
  state_ = State::kConnecting;  // who dials waits for the mutex
  use_block(std::move(block));
  return 0;
}

void Ep::not_dialed(int status) {
  if (state_ != State::kConnecting || ended_ || closing_) return;
  explain(FI_LOG_EP_CTRL, "connecting to " + peer_name(peer_), status);
  eq_->tell_error(&fid, status, {});
  ended(status);
}

int Ep::accept(const void* data, std::size_t length) {
  const LinkLock lock(link_.mutex());
  if (!request_) return -FI_EOPBADSTATE;
  if (length > kCmData || (data == nullptr && length != 0)) return -FI_EINVAL;
  std::unique_ptr<RxBlock> block;
  if (const auto error = prepare(block); error != 0) return error;
  const auto attr = attributes();
  const auto connection = request_->connection;
  if (const auto error = stm_accept(connection, &attr, data, length); error != 0) {
    link_.give_back(std::move(block));
    return explain(FI_LOG_EP_CTRL, "accepting", error);
  }
  connection_ = connection;
  peer_ = request_->peer;
  request_.reset();
  accepts_ = true;
  state_ = State::kConnecting;
  use_block(std::move(block));
  return 0;
}

int Ep::shutdown(std::uint64_t flags) {
  const LinkLock lock(link_.mutex());
  if (flags != 0) return -FI_EBADFLAGS;
  if (!is_up()) return -FI_ENOTCONN;
  state_ = State::kShutDown;
  end_if_told();
  link_.progress();
  return 0;
}

void Ep::connection_event(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) {
    state_ = State::kUp;
    // Who accepts has had the data of the request with that.
    eq_->tell(FI_CONNECTED, &fid, nullptr,
              accepts_ ? std::vector<std::byte>{} : cm_data_of(connection_));
    return;
  }
  const auto connecting = state_ == State::kConnecting;
  const auto status = reason_of_end(event, connecting ? -ECONNREFUSED : -ECANCELED);
  if (ended_) return;
  if (connecting) {
    const auto refused = event.kind == STM_REFUSED;
    link_.not_connected(peer_, status);
    eq_->tell_error(&fid, refused ? -ECONNREFUSED : status,
                    refused ? cm_data_of(connection_) : std::vector<std::byte>{});
  } else {
    eq_->tell(FI_SHUTDOWN, &fid, nullptr, {});
  }
  ended(status);
}

// Nothing comes any more: what waits is given up. Messages that have come stay for receives.
void Ep::ended(int status) {
  ended_ = true;
  link_.stop_watching(*this);
  const auto announced = std::exchange(announced_, {});
  for (auto* const op : announced) part_done(*op, status);
  if (auto* const op = std::exchange(waits_to_read_, nullptr)) part_done(*op, status);
  for (const auto& receive : matching_.take_receives()) give_up(receive, -ECANCELED);
}

// ---- messages that go ----

ssize_t Ep::send(const Outbound& message) {
  Request request{
      .segments = {}, .context = message.context, .flags = message.flags, .data = message.data};
  if (read_segments(message.iov, message.desc, message.count, request.segments) != 0)
    return -FI_EINVAL;
  LinkLock lock(link_.mutex());
  const auto has_room = finds_place(lock);
  if (!is_up()) return -FI_ENOTCONN;
  if (!has_room || has_to_wait(request.flags, *this)) return -FI_EAGAIN;
  const auto length = request.segments.length;
  if (length > ((request.flags & FI_INJECT) != 0 ? kInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  // Who has read an announced message has it in the memory of its receive.
  const auto delivered = (request.flags & FI_DELIVERY_COMPLETE) != 0;
  return length <= kShortMost && !delivered ? send_short(request) : announce(request);
}

ssize_t Ep::send_short(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  const auto copied = with_data || (request.flags & FI_INJECT) != 0;
  const auto& segments = request.segments;
  const auto flags = (request.flags & FI_FENCE) != 0 ? unsigned{STM_FENCE} : 0;
  if ((request.flags & kUntold) != 0 && send_at_once(request, at_once_, flags | STM_QUIET)) {
    reports_.sent(nullptr, FI_SEND | FI_MSG, request.flags);
    return 0;
  }
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  op.owner = this;
  if ((copied || !is_registered(segments)) && send_at_once(request, op, flags)) return sent(op, 0);
  const auto room = segments.length + kTrailer;
  auto error =
      copied ? link_.slots_for(room).take(op.span) : link_.span_of(segments, true, op.span);
  if (error != 0) return sent(op, error);
  if (copied) gather(segments, op.span.data);
  if (with_data) store64(op.span.data + segments.length, request.data);
  const auto kind = with_data ? MessageKind::kData : MessageKind::kPlain;
  return sent(op,
              send_part(op, kind, op.span, segments.length + (with_data ? kTrailer : 0), flags));
}

ssize_t Ep::sent(Op& op, int error) {
  if (error == 0) sends_.push_back(&op);
  return started(op, error);
}

bool Ep::send_at_once(const Request& request, Op& op, unsigned flags) {
  const auto& segments = request.segments;
  std::array<std::byte, kTrailer> trailer;
  std::array<iovec, kSegments + 1> parts;
  auto* end = std::copy_n(segments.iov.begin(), segments.count, parts.begin());
  auto kind = MessageKind::kPlain;
  if ((request.flags & FI_REMOTE_CQ_DATA) != 0) {
    kind = MessageKind::kData;
    store64(trailer.data(), request.data);
    *end++ = {trailer.data(), trailer.size()};
  }
  return SendingConnection::send_at_once(op, flags, static_cast<std::uint32_t>(kind), nullptr, 0,
                                         parts.data(),
                                         static_cast<std::size_t>(end - parts.begin()));
}

// Two parts: the announcement, and that the peer has read the message.
ssize_t Ep::announce(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  auto error = take_announced(op, *this, request);
  if (error != 0) return sent(op, error);
  store64(op.note.data, request.segments.length);
  store64(op.note.data + 8, with_data ? request.data : 0);
  const auto kind = with_data ? MessageKind::kAnnouncedData : MessageKind::kAnnounced;
  error = send_part(op, kind, op.note, kAnnouncement, op.stm_flags);
  if (error == 0) {
    op.parts = 2;
    announced_.push_back(&op);
  }
  return sent(op, error);
}

void Ep::serve(const stm_event_t& event) {
  if (announced_.empty() || event.length > std::max<std::size_t>(announced_.front()->length, 1)) {
    stm_refuse_read(connection_, event.request);
    break_off("it reads what was not announced");
    return;
  }
  auto& op = *announced_.front();
  announced_.pop_front();
  const auto error = serve_announced(op, event.request, event.length);
  if (error != 0) part_done(op, error);
}

// ---- messages that come, and receives ----

namespace {

bool is_announced(MessageKind kind) {
  return kind == MessageKind::kAnnounced || kind == MessageKind::kAnnouncedData;
}

// The header of FI_EP_RDM that says the same.
Head head_of(MessageKind kind, const std::byte* data, std::size_t length) {
  Head head{.length = is_announced(kind) ? load64(data) : length};
  if (kind == MessageKind::kAnnouncedData) head.data = load64(data + 8);
  if (kind == MessageKind::kData) head.data = load64(data + (head.length -= kTrailer));
  if (kind == MessageKind::kData || kind == MessageKind::kAnnouncedData) head.flags = kWithData;
  return head;
}

// The oldest message goes to the receive, or that waits.
int post(Matching& matching, const Inbound& inbound) {
  if (matching.receives() >= kMostPosted) return -FI_EAGAIN;
  Receive receive;
  read_receive(inbound, {}, receive);
  if (auto message = matching.take_message(receive))
    static_cast<Ep*>(message->from)->deliver(std::move(*message), std::move(receive));
  else
    matching.add(std::move(receive));
  return 0;
}

}  // namespace

ssize_t Ep::receive(const Inbound& inbound) {
  if (inbound.count > kSegments) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  if (srx_ != nullptr) return -FI_EINVAL;
  if (ended_ && held_.empty() && matching_.has_none(false)) return -FI_ENOTCONN;
  return fi::post(matching_, inbound);
}

void Ep::arrived(RxBuffer& buffer, const stm_event_t& event) {
  if (!has_brought(event)) return;
  const Arrival arrival{&buffer, static_cast<std::size_t>(event.length),
                        static_cast<MessageKind>(event.tag)};
  if (!is_legal(arrival.kind, buffer.data, arrival.length))
    return break_off("a message is none of the protocol");
  const auto written = arrival.kind == MessageKind::kWritten;
  const auto in_turn = written ? !holds_written() : held_.empty();
  if (in_turn && may_take(arrival.kind)) return take(arrival);
  if (in_turn && written) link_.await(*this);
  held_.push_back(arrival);
}

bool Ep::holds_written() const {
  return std::ranges::find(held_, MessageKind::kWritten, &Arrival::kind) != held_.end();
}

bool Ep::may_take(MessageKind kind) const {
  if (kind == MessageKind::kWritten) return !reports_.are_full();
  return !is_announced_ || !is_announced(kind);
}

void Ep::take(const Arrival& arrival) {
  auto& buffer = *arrival.buffer;
  if (arrival.kind == MessageKind::kWritten) {
    reports_.tell_written(load64(buffer.data), load64(buffer.data + 8), FI_ADDR_NOTAVAIL);
    return lend(buffer);
  }
  const auto head = head_of(arrival.kind, buffer.data, arrival.length);
  const auto land_at_once = [&](const Receive& receive) {
    land(head, buffer.data, receive, FI_ADDR_NOTAVAIL);
    lend(buffer);
  };
  if (!is_announced(arrival.kind) && inbox().serve(head, {}, land_at_once)) return;
  Message message{.from = this,
                  .announced = is_announced(arrival.kind),
                  .head = head,
                  .copy = {},
                  .lies = buffer.data,
                  .buffer = &buffer};
  is_announced_ = is_announced_ || message.announced;
  if (auto receive = inbox().take_receive(message, 0))
    deliver(std::move(message), std::move(*receive));
  else
    inbox().add(std::move(message));
}

void Ep::done_with(Message& message) {
  lend(*message.buffer);
}

// The sender waits for being read, even where the receive has no room, or cannot be written: else
// it would take the next read for this one.
void Ep::pull(const Message& message, Receive&& receive) {
  auto& op = begin_receive(message, std::move(receive));
  op.owner = this;
  op.parts = 1;
  link_.watch(*this);
  begin_to_read(op);
}

// Where what it needs is used up, it waits until other operations under way have given that back.
void Ep::begin_to_read(Op& op) {
  auto error = begin_read(op);
  if (!ended_ && link_.comes_back(error)) {
    waits_to_read_ = &op;
    link_.await(*this);
    lack_ = link_.lack();
    return;
  }
  if (error != 0) {
    op.status = error;
    op.length = 0;
    error = begin_read(op);
  }
  if (error != 0) part_done(op, error);
}

int Ep::begin_read(Op& op) {
  const auto landing = op.landing;
  auto error = find_place(op);
  if (error == 0) error = read_part(op, std::max<std::size_t>(op.length, 1));
  if (error == 0) return 0;
  op.span.release();  // as before
  op.landing = landing;
  return error;
}

// ---- shared receive contexts ----

namespace {

fi_ops srx_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return object_of<Srx, fid_ep>(id).close(); }); },
    .bind = refuse,
    .control = [](fid_t, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_ep srx_ep_calls{
    .size = sizeof(fi_ops_ep),
    .cancel =
        [](fid_t id, void* context) {
          return guarded([&] { return object_of<Srx, fid_ep>(id).cancel(context); });
        },
    .getopt = refuse,
    .setopt = refuse,
    .tx_ctx = refuse,
    .rx_ctx = refuse,
    .rx_size_left = refuse,
    .tx_size_left = refuse,
};

}  // namespace

Srx::Srx(Domain& domain, const fi_rx_attr* attr, void* context)
    : MessageEnd({.fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_object_calls},
                  .ops = &srx_ep_calls,
                  .cm = nullptr,
                  .msg = &msg_calls,
                  .rma = nullptr,
                  .tagged = nullptr,
                  .atomic = nullptr,
                  .collective = nullptr},
                 kMsgOffer, {}),
      domain_(domain),
      link_(domain.link()),
      rx_size_(attr != nullptr && attr->size != 0 ? attr->size : kRxSize) {
  domain_.use();
}

int Srx::open(Domain& domain, const fi_rx_attr* attr, void* context, fid_ep*& out) {
  if (attr != nullptr && attr->size > kMostRxSize) return -FI_EINVAL;
  out = new Srx(domain, attr, context);
  return 0;
}

int Srx::close() {
  return end_unless([this] { return !users_.empty(); }, this, link_, domain_);
}

// The queue of an endpoint that is bound to it tells of that.
ssize_t Srx::cancel(void* context) {
  const LinkLock lock(link_.mutex());
  const auto teller = std::ranges::find_if(users_, &Ep::tells_of_receives);
  if (teller == users_.end()) return -FI_ENOCQ;
  const auto receive = matching_.cancel(context);
  if (!receive) return -FI_ENOENT;
  (*teller)->give_up(*receive, -ECANCELED);
  return 0;
}

ssize_t Srx::receive(const Inbound& inbound) {
  if (inbound.count > kSegments) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  return fi::post(matching_, inbound);
}

}  // namespace stp::fi
