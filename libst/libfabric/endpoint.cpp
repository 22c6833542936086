// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/endpoint.h"

#include <algorithm>
#include <cerrno>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

// ---- connections ----

stm_connection_attr_t Connection::attributes() {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.context = reinterpret_cast<std::uintptr_t>(static_cast<Owner*>(this));
  attr.events = of_.link().queue();
  attr.flags = STM_FRUGAL | STM_PATIENT;  // there may be many
  return attr;
}

int Connection::dial(const Address& peer, std::vector<std::byte> data) {
  auto& link = of_.link();
  const auto attr = attributes();
  const auto error = stm_connection_create(link.domain(), &attr, &connection_);
  if (error != 0) return error;
  link.mutex().is_held();
  link.dialers().dial(
      {.owner = this, .connection = connection_, .peer = peer_name(peer), .data = std::move(data)});
  return 0;
}

bool Connection::is_there() const {
  stm_connection_info_t info{};
  info.size = sizeof info;
  return !ended_ && connection_ != nullptr && stm_connection_query(connection_, &info) == 0 &&
         info.state < STM_ENDING;
}

void Connection::break_off(const char* why) {
  if (ended_ || std::exchange(broken_, true)) return;
  of_.broken_off(why);
  if (connection_ != nullptr) stm_disconnect(connection_, STM_BROKEN);
}

int Connection::reason_of_end(const stm_event_t& event, int otherwise) {
  if (event.kind == STM_FAILED) of_.link().suspect();
  return event.status != 0 ? event.status : otherwise;
}

int SendingConnection::begin_access(Op& op) {
  const auto context = reinterpret_cast<std::uintptr_t>(&op);
  if (op.action == Action::kAtomic) {
    last_word_.begin(op);
    return post_step(connection_, op);
  }
  if (op.action == Action::kRead)
    return stm_get(connection_, context, op.stm_flags, op.span.memory, op.span.data, op.length,
                   op.remote_key, op.remote_address);
  const auto error = stm_put(connection_, context, op.stm_flags, op.span.memory, op.span.data,
                             op.length, op.remote_key, op.remote_address);
  if (error != 0 || op.note.data == nullptr) return error;
  op.parts = 2;
  op.owes_note = true;
  notes_.push_back(&op);
  return 0;
}

bool SendingConnection::end_part(Op& op, int status) {
  // With a note it is complete, and the peer is being told.
  if (op.note.data == nullptr && last_word_.go_on(connection_, op, status)) return false;
  if (!op.owes_note) return op.end_part(status);
  op.status = status;
  op.parts = 1;
  send_notes();
  return false;
}

int SendingConnection::serve_announced(Op& op, std::uint32_t request, std::uint64_t length) {
  const auto& from = op.length != 0 ? op.span : op.note;
  return stm_serve_read(connection_, request, reinterpret_cast<std::uintptr_t>(&op), 0, from.memory,
                        from.data, static_cast<std::size_t>(length));
}

void SendingConnection::add_note(Op& op) {
  op.parts = 1;
  op.owes_note = true;
  notes_.push_back(&op);
  send_notes();
}

void SendingConnection::send_notes() {
  while (!notes_.empty() && notes_.front()->parts == 1) {
    auto& first = *notes_.front();
    auto error = first.status;
    if (error == 0 && connection_ == nullptr) error = -ENOTCONN;
    if (error == 0) error = send_note(first);
    // Its bytes are at the peer already: it does not fail because the queue has no place.
    if (error == -EAGAIN) return of_.link().await(*this);
    notes_.pop_front();
    first.owes_note = false;
    if (error != 0) part_done(first, error);
  }
}

void SendingConnection::look_again() {
  send_notes();
}

// ---- FI_MSG ----

int check_receive(const Offer& offer, std::uint64_t flags, std::uint64_t known) {
  constexpr std::uint64_t kLooks = FI_PEEK | FI_CLAIM | FI_DISCARD;
  if (offer.type == FI_EP_RDM) known |= kLooks;
  // FI_TRANSMIT_COMPLETE asks for what each receive is.
  if ((flags & ~(known | FI_MORE | FI_TRANSMIT_COMPLETE)) != 0) return -FI_EBADFLAGS;
  return (flags & FI_DISCARD) != 0 && (flags & (FI_PEEK | FI_CLAIM)) == 0 ? -FI_EBADFLAGS : 0;
}

namespace {

MessageEnd& end_of(fid_ep* ep) {
  return *static_cast<MessageEnd*>(ep);
}

ssize_t send(fid_ep* ep, const Outbound& message) {
  if (lacks_some(message.iov, message.count)) return -FI_EINVAL;
  return guarded([&] { return end_of(ep).send(message); });
}

// From one buffer.
ssize_t send(fid_ep* ep, const void* buffer, std::size_t length, void* desc, Outbound&& message) {
  const iovec iov{const_cast<void*>(buffer), length};
  message.iov = &iov;
  message.desc = &desc;
  message.count = 1;
  return send(ep, message);
}

ssize_t receive(fid_ep* ep, const Inbound& inbound) {
  if (lacks_landing(inbound)) return -FI_EINVAL;
  return guarded([&] { return end_of(ep).receive(inbound); });
}

// Into one buffer.
ssize_t receive(fid_ep* ep, void* buffer, std::size_t length, void* desc, Inbound&& inbound) {
  const iovec iov{buffer, length};
  inbound.iov = &iov;
  inbound.desc = &desc;
  inbound.count = 1;
  return receive(ep, inbound);
}

}  // namespace

fi_ops_msg msg_calls{
    .size = sizeof(fi_ops_msg),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           void* context) {
          return receive(ep, buffer, length, desc,
                         {.context = context, .flags = end_of(ep).rx_flags(), .from = from});
        },
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           void* context) {
          return receive(ep, {.iov = iov,
                              .desc = desc,
                              .count = count,
                              .context = context,
                              .flags = end_of(ep).rx_flags(),
                              .from = from});
        },
    .recvmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      if (const auto error =
              check_receive(end_of(ep).offer(), flags, end_of(ep).offer().rx_op_flags);
          error != 0)
        return error;
      return receive(ep, {.iov = msg->msg_iov,
                          .desc = msg->desc,
                          .count = msg->iov_count,
                          .context = msg->context,
                          .flags = flags,
                          .from = msg->addr});
    },
    .send =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           void* context) {
          return send(ep, buffer, length, desc,
                      {.context = context, .flags = end_of(ep).tx_flags(), .to = to});
        },
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           void* context) {
          return send(ep, {.iov = iov,
                           .desc = desc,
                           .count = count,
                           .context = context,
                           .flags = end_of(ep).tx_flags(),
                           .to = to});
        },
    .sendmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
      return send(ep, {.iov = msg->msg_iov,
                       .desc = msg->desc,
                       .count = msg->iov_count,
                       .context = msg->context,
                       .flags = flags,
                       .data = msg->data,
                       .to = msg->addr});
    },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) {
          return send(ep, buffer, length, nullptr, {.flags = FI_INJECT | kUntold, .to = to});
        },
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, void* context) {
          return send(ep, buffer, length, desc,
                      {.context = context,
                       .flags = end_of(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                       .data = data,
                       .to = to});
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to) {
          return send(ep, buffer, length, nullptr,
                      {.flags = FI_INJECT | kUntold | FI_REMOTE_CQ_DATA, .data = data, .to = to});
        },
};

// ---- FI_RMA ----

namespace {

// Both directions: `call` is &AnyEndpoint::write or &AnyEndpoint::read.
template <class Call>
ssize_t transfer(fid_ep* ep, Call call, Request&& request, fi_addr_t to, const Target& target,
                 std::uint64_t flags) {
  if (lacks_some(request.segments.iov.data(), request.segments.count)) return -FI_EINVAL;
  return guarded([&] {
    request.flags = flags;
    return (endpoint_of(ep).*call)(request, to, target);
  });
}

template <class Call>
ssize_t transfer(fid_ep* ep, Call call, const iovec* iov, void** desc, std::size_t count,
                 Request&& request, fi_addr_t to, const Target& target, std::uint64_t flags) {
  const auto error = read_segments(iov, desc, count, request.segments);
  return error != 0 ? error : transfer(ep, call, std::move(request), to, target, flags);
}

template <class Call>
ssize_t transfer(fid_ep* ep, Call call, const fi_msg_rma& msg, std::uint64_t flags) {
  if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
  if (msg.rma_iov_count != 1) return -FI_EINVAL;
  Request request{.segments = {}, .context = msg.context, .data = msg.data};
  const auto error = read_segments(msg.msg_iov, msg.desc, msg.iov_count, request.segments);
  if (error != 0) return error;
  if (msg.rma_iov[0].len != request.segments.length) return -FI_EINVAL;
  return transfer(ep, call, std::move(request), msg.addr,
                  {.address = msg.rma_iov[0].addr, .key = msg.rma_iov[0].key}, flags);
}

fi_ops_rma rma_calls{
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &AnyEndpoint::read,
                          {.segments = one_segment(buffer, length, desc), .context = context}, from,
                          {address, key}, endpoint_of(ep).tx_flags());
        },
    .readv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &AnyEndpoint::read, iov, desc, count,
                          {.segments = {}, .context = context}, from, {address, key},
                          endpoint_of(ep).tx_flags());
        },
    .readmsg = [](fid_ep* ep, const fi_msg_rma* msg,
                  std::uint64_t flags) { return transfer(ep, &AnyEndpoint::read, *msg, flags); },
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &AnyEndpoint::write,
                          {.segments = one_segment(buffer, length, desc), .context = context}, to,
                          {address, key}, endpoint_of(ep).tx_flags());
        },
    .writev =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &AnyEndpoint::write, iov, desc, count,
                          {.segments = {}, .context = context}, to, {address, key},
                          endpoint_of(ep).tx_flags());
        },
    .writemsg = [](fid_ep* ep, const fi_msg_rma* msg,
                   std::uint64_t flags) { return transfer(ep, &AnyEndpoint::write, *msg, flags); },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t address,
           std::uint64_t key) {
          return transfer(ep, &AnyEndpoint::write,
                          {.segments = one_segment(buffer, length, nullptr)}, to, {address, key},
                          FI_INJECT | kUntold);
        },
    .writedata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(
              ep, &AnyEndpoint::write,
              {.segments = one_segment(buffer, length, desc), .context = context, .data = data}, to,
              {address, key}, endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t address, std::uint64_t key) {
          return transfer(ep, &AnyEndpoint::write,
                          {.segments = one_segment(buffer, length, nullptr), .data = data}, to,
                          {address, key}, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

// ---- the others ----

fi_ops object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return endpoint_of(id).close(); }); },
    .bind =
        [](fid_t id, fid_t other, std::uint64_t flags) {
          return guarded([&] { return endpoint_of(id).bind(other, flags); });
        },
    .control =
        [](fid_t id, int command, void* argument) {
          return guarded([&] { return endpoint_of(id).control(command, argument); });
        },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_ep ep_calls{
    .size = sizeof(fi_ops_ep),
    .cancel =
        [](fid_t id, void* context) {
          return guarded([&] { return endpoint_of(id).cancel(context); });
        },
    .getopt =
        [](fid_t id, int level, int name, void* value, std::size_t* length) {
          return level != FI_OPT_ENDPOINT ? -FI_ENOPROTOOPT
                                          : endpoint_of(id).get_option(name, value, length);
        },
    .setopt =
        [](fid_t id, int level, int name, const void* value, std::size_t length) {
          return level != FI_OPT_ENDPOINT ? -FI_ENOPROTOOPT
                                          : endpoint_of(id).set_option(name, value, length);
        },
    .tx_ctx = refuse,
    .rx_ctx = refuse,
    .rx_size_left =
        [](fid_ep* ep) { return guarded([&] { return endpoint_of(ep).size_left(false); }); },
    .tx_size_left =
        [](fid_ep* ep) { return guarded([&] { return endpoint_of(ep).size_left(true); }); },
};

fi_ops_cm cm_calls{
    .size = sizeof(fi_ops_cm),
    .setname =
        [](fid_t id, void* address, std::size_t length) {
          return guarded([&] { return endpoint_of(id).set_name(address, length); });
        },
    .getname =
        [](fid_t id, void* address, std::size_t* length) {
          return guarded([&] { return endpoint_of(id).get_name(address, length); });
        },
    .getpeer =
        [](fid_ep* ep, void* address, std::size_t* length) {
          return guarded([&] { return endpoint_of(ep).get_peer(address, length); });
        },
    .connect =
        [](fid_ep* ep, const void* address, const void* data, std::size_t length) {
          return guarded([&] { return endpoint_of(ep).connect(address, data, length); });
        },
    .listen = refuse,
    .accept =
        [](fid_ep* ep, const void* data, std::size_t length) {
          return guarded([&] { return endpoint_of(ep).accept(data, length); });
        },
    .reject = refuse,
    .shutdown =
        [](fid_ep* ep, std::uint64_t flags) {
          return guarded([&] { return endpoint_of(ep).shutdown(flags); });
        },
    .join = refuse,
};

}  // namespace

// ---- an endpoint ----

AnyEndpoint::AnyEndpoint(Domain& domain, const fi_info& info, const Offer& offer,
                         fi_ops_tagged* tagged_calls, void* context)
    : MessageEnd({.fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &object_calls},
                  .ops = &ep_calls,
                  .cm = &cm_calls,
                  .msg = &msg_calls,
                  .rma = &rma_calls,
                  .tagged = tagged_calls,
                  .atomic = &atomic_calls,
                  .collective = nullptr},
                 offer, OpFlags(info)),
      domain_(domain),
      link_(domain.link()),
      counts_accesses_(offer.type == FI_EP_RDM && (info.caps & FI_RMA_EVENT) != 0),
      format_(info.addr_format),
      name_(address_or_any(info.src_addr, info.src_addrlen)),
      tx_size_(info.tx_attr != nullptr && info.tx_attr->size != 0 ? info.tx_attr->size : kTxSize),
      rx_size_(info.rx_attr != nullptr && info.rx_attr->size != 0 ? info.rx_attr->size : kRxSize) {
  domain_.use();
}

int AnyEndpoint::check_sizes(const fi_info& info) {
  const auto too_much = (info.tx_attr != nullptr && info.tx_attr->size > kMostTxSize) ||
                        (info.rx_attr != nullptr && info.rx_attr->size > kMostRxSize);
  return too_much ? -FI_EINVAL : 0;
}

int AnyEndpoint::bind(fid_t other, std::uint64_t flags) {
  const LinkLock lock(link_.mutex());
  if (enabled_) return -FI_EOPBADSTATE;
  switch (other->fclass) {
    case FI_CLASS_EQ:
      return Eq::bind(eq_, other, flags);
    case FI_CLASS_CQ:
      return reports_.bind_cq(other, flags);
    case FI_CLASS_CNTR:
      return reports_.bind_cntr(other, flags, counts_accesses_);
    default:
      return bind_other(other, flags);
  }
}

int AnyEndpoint::control(int command, void* argument) {
  const LinkLock lock(link_.mutex());
  return command == FI_ENABLE ? enable() : op_flags_.control(command, argument, offer_);
}

int tell_option(std::size_t option, void* value, std::size_t* length) {
  if (*length < sizeof option) return -FI_ETOOSMALL;
  std::memcpy(value, &option, sizeof option);
  *length = sizeof option;
  return 0;
}

ssize_t AnyEndpoint::size_left(bool tx) {
  const LinkLock lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  const auto size = tx ? tx_size_ : rx_size_;
  return static_cast<ssize_t>(size - std::min(size, tx ? taken() : inbox().receives()));
}

int AnyEndpoint::set_name(const void* address, std::size_t length) {
  const LinkLock lock(link_.mutex());
  Address given;
  if (!read_address(address, length, given)) return -FI_EINVAL;
  if (has_begun()) return -FI_EOPBADSTATE;
  if (!link_.has_address(given, format_)) return -FI_EADDRNOTAVAIL;
  name_ = given;
  return 0;
}

int AnyEndpoint::close() {
  {
    LinkLock lock(link_.mutex());
    closing_ = true;
    link_.linger(lock, [this] { return lingers(); });
    end_connections(lock);
    reports_.release();
    Eq::unbind(eq_, &fid);
  }
  domain_.unuse();
  delete this;
  return 0;
}

// ---- operations ----

Op& AnyEndpoint::begin(const Request& request, Direction direction, std::uint64_t kind) {
  auto& op = link_.take_op();
  op.context = request.context;
  op.flags = kind;
  op.direction = direction;
  op.told = reports_.tells(direction, request.flags);
  op.injected = (request.flags & kUntold) != 0;
  op.length = request.segments.length;
  op.data = request.data;
  op.stm_flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  op.parts = 1;
  ++outstanding_;
  if (op.injected) ++injected_;
  return op;
}

ssize_t AnyEndpoint::started(Op& op, int error) {
  if (error == 0) return 0;
  leaves(op);
  link_.free_op(op);
  return link_.comes_back(error) ? -FI_EAGAIN : -error_of(error);
}

int AnyEndpoint::take_bytes(Op& op, const Request& request) {
  auto segments = request.segments;
  if ((request.flags & FI_INJECT) != 0) segments.desc = {};  // the bytes are copied
  return link_.span_of(segments, true, op.span);
}

int AnyEndpoint::take_announced(Op& op, SendingConnection& way, const Request& request) {
  way.add_steps(op);
  const auto error = link_.notes().take(op.note);
  return error != 0 ? error : take_bytes(op, request);
}

void AnyEndpoint::leaves(const Op& op) {
  --outstanding_;
  if (op.injected) --injected_;
  if (op.in_steps) static_cast<SendingConnection*>(op.owner)->end_steps();
}

void AnyEndpoint::finish(Op& op) {
  leaves(op);
  if (op.status == 0 && op.landing.count != 0) scatter(op.span.data, op.landing);
  if (!op.reported) reports_.complete(op);
  link_.free_op(op);
}

int AnyEndpoint::may_access(LinkLock& lock, std::uint64_t flags, fi_addr_t to,
                            SendingConnection*& way) {
  if (!finds_place(lock)) return -FI_EAGAIN;
  if (const auto error = way_to(to, way); error != 0) return error;
  return has_to_wait(flags, *way) ? -FI_EAGAIN : 0;
}

void AnyEndpoint::access(Op& op, SendingConnection& way, Action action, const Target& target,
                         bool noted) {
  op.action = action;
  op.remote_key = static_cast<std::uint32_t>(target.key);
  op.remote_address = target.address;
  if (offer_.type == FI_EP_RDM && is_by_program(target.key)) {
    op.asked_key = target.key;
    op.action = Action::kAsk;
  }
  if (noted || op.asked_key != 0 || (op.atomic && op.atomic->repeats()) || way.tells_accesses())
    way.add_steps(op);
}

// A put is complete when it is in the peer's memory: FI_DELIVERY_COMPLETE asks for nothing more.
ssize_t AnyEndpoint::write(const Request& request, fi_addr_t to, const Target& target) {
  LinkLock lock(link_.mutex());
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (request.segments.length > (inject ? offer_.inject_most : kMostMessage)) return -FI_EMSGSIZE;
  SendingConnection* way = nullptr;
  if (const auto error = may_access(lock, request.flags, to, way); error != 0) return error;
  auto& op = begin(request, Direction::kWrite, FI_RMA | FI_WRITE);
  const auto noted = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  access(op, *way, Action::kWrite, target, noted);
  auto error = take_bytes(op, request);
  if (error == 0 && noted) {
    error = link_.notes().take(op.note);
    if (error == 0) tell_of(op, op.note.data);
  }
  return start(op, *way, error);
}

ssize_t AnyEndpoint::read(const Request& request, fi_addr_t to, const Target& target) {
  LinkLock lock(link_.mutex());
  if (request.segments.length > kMostMessage) return -FI_EMSGSIZE;
  SendingConnection* way = nullptr;
  if (const auto error = may_access(lock, request.flags, to, way); error != 0) return error;
  // One of nothing is done at once, and waits here for what was posted before to that peer.
  const auto waits = request.segments.length == 0 && (request.flags & FI_FENCE) != 0;
  if (waits && link_.has_under_way(*way)) return -FI_EAGAIN;
  auto& op = begin(request, Direction::kRead, FI_RMA | FI_READ);
  access(op, *way, Action::kRead, target);
  if (op.length == 0) {  // there is nothing to get
    finish(op);
    return 0;
  }
  const auto error = link_.span_of(request.segments, false, op.span);
  if (op.span.data != request.segments.iov[0].iov_base) op.landing = request.segments;
  return start(op, *way, error);
}

ssize_t AnyEndpoint::fetch(const Request& request, fi_addr_t to, const Target& target,
                           const Function& function) {
  LinkLock lock(link_.mutex());
  SendingConnection* way = nullptr;
  if (const auto error = may_access(lock, request.flags, to, way); error != 0) return error;
  const auto reads = function.kind != Function::Kind::kPlain;
  auto& op = begin(request, reads ? Direction::kRead : Direction::kWrite,
                   FI_ATOMIC | (reads ? FI_READ : FI_WRITE));
  const auto error = prepare_atomic(link_, op, target, function);
  access(op, *way, Action::kAtomic, target);
  return start(op, *way, error);
}

// ---- receives ----

Outcome AnyEndpoint::outcome_of(const Message& message, const Receive& receive) const {
  Outcome told;
  told.direction = Direction::kReceive;
  told.context = receive.context;
  told.flags = FI_RECV | (receive.tagged ? FI_TAGGED : FI_MSG);
  if ((message.head.flags & kWithData) != 0) told.flags |= FI_REMOTE_CQ_DATA;
  told.told = reports_.tells(Direction::kReceive, receive.flags);
  told.length = std::min<std::size_t>(message.head.length, receive.segments.length);
  told.overflow = message.head.length - told.length;
  told.data = message.head.data;
  told.tag = message.head.tag;
  told.injected = (receive.flags & kUntold) != 0;
  if (receive.shared) told.buffer = receive.segments.iov[0].iov_base;
  if (message.source.port != 0) told.source = number_of(message.source);
  return told;
}

void AnyEndpoint::tell(Outcome& told, Shared* shared) {
  if (told.injected) return;  // it was discarded
  if (shared != nullptr && --shared->busy == 0 && shared->used_up) told.flags |= FI_MULTI_RECV;
  // The buffer is the program's again: it has to hear of it.
  if ((told.flags & FI_MULTI_RECV) != 0) told.told = true;
  reports_.complete(told);
}

void AnyEndpoint::deliver(Message&& message, Receive&& receive) {
  const auto from = message.from;
  if (message.announced && from != nullptr) {
    from->done_with(message);
    from->pull(message, std::move(receive));
    return;
  }
  auto outcome = outcome_of(message, receive);
  if (message.announced)
    outcome.status = -ENOTCONN;  // it was claimed, and its sender has gone
  else if (!message.landed)
    scatter(message.bytes(), receive.segments, outcome.length);
  if (from != nullptr) from->done_with(message);
  tell(outcome, receive.shared.get());
}

void AnyEndpoint::lose(const Message& message, const Receive& receive, int status) {
  auto outcome = outcome_of(message, receive);
  outcome.status = status;
  tell(outcome, receive.shared.get());
}

Op& AnyEndpoint::begin_receive(const Message& message, Receive&& receive) {
  auto& op = link_.take_op();
  static_cast<Outcome&>(op) = outcome_of(message, receive);
  op.shared = receive.shared;
  op.landing = shortened(receive.segments, op.length);
  return op;
}

void AnyEndpoint::received(Op& op) {
  if (op.status == 0 && op.landing.count != 0) scatter(op.span.data, op.landing);
  tell(op, op.shared.get());
  link_.free_op(op);
}

ssize_t AnyEndpoint::cancel(void* context) {
  const LinkLock lock(link_.mutex());
  const auto receive = matching_.cancel(context);
  if (!receive) return -FI_ENOENT;
  give_up(*receive, -ECANCELED);
  return 0;
}

void AnyEndpoint::give_up(const Receive& receive, int status) {
  auto outcome = outcome_of({}, receive);
  outcome.tag = receive.tag;
  outcome.status = status;
  // Of a buffer of several messages, those that are on their way into it are told first or last.
  // The last one gives it back.
  if (receive.shared) {
    receive.shared->used_up = true;
    if (receive.shared->busy == 0) outcome.flags |= FI_MULTI_RECV;
  }
  reports_.complete(outcome);
}

int AnyEndpoint::find_place(Op& op) {
  std::byte nothing{};
  const auto landing = op.length != 0 ? op.landing : one_segment(&nothing, 1, nullptr);
  if (const auto error = link_.span_of(landing, false, op.span); error != 0) return error;
  if (op.length == 0 || op.span.data == landing.iov[0].iov_base) op.landing = {};
  return 0;
}

void read_receive(const Inbound& inbound, const Address& source, Receive& out) {
  out.context = inbound.context;
  out.flags = inbound.flags;
  out.tagged = inbound.tagged;
  out.tag = inbound.tag;
  out.ignore = inbound.ignore;
  out.segments.length = 0;
  read_segments(inbound.iov, inbound.desc, inbound.count, out.segments);
  out.source = source;
}

}  // namespace stp::fi
