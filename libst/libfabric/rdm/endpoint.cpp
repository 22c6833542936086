// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint of FI_EP_RDM is made of, and its connections.
#include "libst/libfabric/rdm/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/atomic_calls.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi::rdm {
namespace {

constexpr std::size_t kLeastLeft = 4096;

fi_ops endpoint_object_calls{
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

fi_ops_ep endpoint_calls{
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

}  // namespace

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
    .getpeer = refuse,
    .connect = refuse,
    .listen = refuse,
    .accept = refuse,
    .reject = refuse,
    .shutdown = refuse,
    .join = refuse,
};

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : fid_ep{.fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &endpoint_object_calls},
             .ops = &endpoint_calls,
             .cm = &cm_calls,
             .msg = &msg_calls,
             .rma = &rma_calls,
             .tagged = &tagged_calls,
             .atomic = &AtomicCalls<Endpoint>::table,
             .collective = nullptr},
      domain_(domain),
      link_(domain.link()),
      op_flags_(info),
      tx_size_(info.tx_attr != nullptr && info.tx_attr->size != 0 ? info.tx_attr->size : kTxSize),
      rx_size_(info.rx_attr != nullptr && info.rx_attr->size != 0 ? info.rx_attr->size : kRxSize),
      least_left_(kLeastLeft),
      most_kept_(parameters().rdm_kept),
      counts_accesses_((info.caps & FI_RMA_EVENT) != 0),
      directed_((info.caps & FI_DIRECTED_RECV) != 0),
      format_(info.addr_format),
      buffers_(link_.domain()),
      lanes_(link_.domain()) {
  name_ = address_or_any(info.src_addr, info.src_addrlen);
  domain_.use();
}

int Endpoint::open(Domain& domain, const fi_info& info, void* context, fid_ep*& out) {
  if (info.tx_attr != nullptr && info.tx_attr->size > kMostTxSize) return -FI_EINVAL;
  if (info.rx_attr != nullptr && info.rx_attr->size > kMostRxSize) return -FI_EINVAL;
  out = new Endpoint(domain, info, context);
  return 0;
}

int Endpoint::close() {
  {
    LinkLock lock(link_.mutex());
    closing_ = true;
    linger(lock);
    // Meanwhile the thread that dials may end some of them.
    std::vector<const Outgoing*> all;
    for (const auto& [place, connection] : outgoing_) all.push_back(connection.get());
    for (const auto& connection : ended_outgoing_) all.push_back(connection.get());
    for (const auto* const connection : all) link_.stop_dialing(lock, *connection);
    if (listener_ != nullptr) stm_listener_close(listener_);
    // Whatever was posted completes now; nothing refers to the endpoint afterwards.
    for (const auto& [place, connection] : outgoing_) connection->close();
    for (const auto& [key, connection] : incoming_) connection->close();
    link_.drain();
    for (const auto& [place, connection] : outgoing_) connection->give_up(-ECANCELED);
    for (const auto& [key, connection] : incoming_) connection->give_up(-ECANCELED);
    bury();
    outgoing_.clear();
    incoming_.clear();
    buffers_.clear();
    lanes_.clear();
    for (const auto& receive : matching_.clear()) {
      auto outcome = outcome_of({}, receive);
      outcome.status = -ECANCELED;
      tell(outcome, receive.shared.get());
    }
    reports_.release();
    if (eq_ != nullptr) {
      eq_->forget(&fid);
      eq_->unuse();
    }
    if (av_ != nullptr) av_->unuse();
  }
  domain_.unuse();
  delete this;
  return 0;
}

void Endpoint::linger(LinkLock& lock) {
  link_.linger(lock, [this] {
    const auto sends = [](const auto& each) { return each.second->is_sending(); };
    return injected_ != 0 || std::ranges::any_of(outgoing_, sends);
  });
}

// No event refers to those that have ended: their last one has been taken.
void Endpoint::bury() {
  for (const auto& connection : ended_outgoing_) connection->close();
  ended_outgoing_.clear();
  bury_incoming();
}

void Endpoint::bury_incoming() {
  for (const auto& connection : ended_incoming_) connection->close();
  ended_incoming_.clear();
}

// What peers have left counts as connections that keep as much as they may: so peers that connect
// and go, again and again, do not leave more than those that stay.
std::size_t Endpoint::peers_that_send() const {
  return incoming_.size() + matching_.left_bytes() / std::max<std::size_t>(most_kept_, 1);
}

int Endpoint::bind(fid_t other, std::uint64_t flags) {
  const LinkLock lock(link_.mutex());
  if (enabled_) return -FI_EOPBADSTATE;
  switch (other->fclass) {
    case FI_CLASS_AV:
      if (flags != 0) return -FI_EBADFLAGS;
      if (av_ != nullptr) return -FI_EINVAL;
      av_ = &object_of<Av, fid_av>(other);
      av_->use();
      return 0;
    case FI_CLASS_EQ:
      return Eq::bind(eq_, other, flags);
    case FI_CLASS_CQ:
      return reports_.bind_cq(other, flags);
    case FI_CLASS_CNTR:
      return reports_.bind_cntr(other, flags, counts_accesses_);
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::enable() {
  if (av_ == nullptr) return -FI_ENOAV;
  if (!reports_.has_queue() && !reports_.has_counter()) return -FI_ENOCQ;
  if (enabled_) return -FI_EOPBADSTATE;
  if (const auto error = listen_at(link_, name_, *this, listener_); error != 0) return error;
  enabled_ = true;
  return 0;
}

int Endpoint::control(int command, void* argument) {
  const LinkLock lock(link_.mutex());
  return command == FI_ENABLE ? enable() : op_flags_.control(command, argument, kRdmOffer);
}

int Endpoint::get_option(int name, void* value, std::size_t* length) {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (*length < sizeof(std::size_t)) return -FI_ETOOSMALL;
  const LinkLock lock(link_.mutex());
  *static_cast<std::size_t*>(value) = least_left_;
  *length = sizeof(std::size_t);
  return 0;
}

int Endpoint::set_option(int name, const void* value, std::size_t length) {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (length != sizeof(std::size_t)) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  std::memcpy(&least_left_, value, sizeof least_left_);
  return 0;
}

ssize_t Endpoint::size_left(bool tx) {
  const LinkLock lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  return static_cast<ssize_t>(tx ? tx_size_ - outstanding_ : rx_size_ - matching_.receives());
}

int Endpoint::set_name(const void* address, std::size_t length) {
  const LinkLock lock(link_.mutex());
  Address given;
  if (!read_address(address, length, given)) return -FI_EINVAL;
  if (enabled_) return -FI_EOPBADSTATE;
  if (!link_.has_address(given, format_)) return -FI_EADDRNOTAVAIL;
  name_ = given;
  return 0;
}

int Endpoint::get_name(void* address, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  return tell_address(name(), format_, address, length);
}

// ---- connections ----

[[gnu::noinline]] int Endpoint::find_connection_to(fi_addr_t to, Outgoing*& out) {
  if (!ended_outgoing_.empty() || !ended_incoming_.empty()) bury();
  const auto place = av_->at(to);
  if (place.port == 0) return -FI_EINVAL;
  forget_losses();
  if (const auto status = losses_.take_for_send(place); status != 0) return -error_of(status);
  if (const auto found = outgoing_.find(place); found != outgoing_.end()) {
    out = recent_ = found->second.get();
    recent_to_ = to;
    recent_as_of_ = av_->version();
    return 0;
  }
  if (outgoing_.size() >= kMostConnections) {
    inform(FI_LOG_EP_CTRL, "the endpoint sends to too many peers");
    return -FI_ENOSPC;
  }
  auto made = std::make_unique<Outgoing>(*this, place);
  if (const auto error = made->dial(); error != 0) {
    made->close();
    return explain(FI_LOG_EP_CTRL, "a connection", error);
  }
  out = made.get();
  outgoing_.emplace(place, std::move(made));
  return 0;
}

void Endpoint::requested(stm_connection_t connection) {
  if (!closing_) bury_incoming();  // an endpoint that only receives makes no connection
  auto data = cm_data_of(connection);
  const auto peer = unpack_request(data, kMagic);
  const auto why = [&]() -> const char* {
    if (closing_) return "the endpoint is being closed";
    if (!peer) return "it is no endpoint of FI_EP_RDM";
    if (peers_that_send() >= kMostConnections) return "too many peers send to the endpoint";
    return nullptr;
  }();
  if (why != nullptr) {
    inform_seldom(++rejected_, "who asks to connect is rejected", why);
    stm_reject(connection, nullptr, 0);
    return;
  }
  // Whatever follows is for those who know more.
  const auto knows_lanes = data.size() >= kKnowsLanes.size() &&
                           std::memcmp(data.data(), kKnowsLanes.data(), kKnowsLanes.size()) == 0;
  auto made = std::make_unique<Incoming>(*this, connection, *peer, knows_lanes);
  if (const auto error = made->accept(); error != 0) {
    explain(FI_LOG_EP_CTRL, "accepting", error);
    stm_reject(connection, nullptr, 0);
    return;
  }
  losses_.end_silence(*peer);
  const auto* const key = made.get();
  incoming_.emplace(key, std::move(made));
}

void Endpoint::has_ended(const Outgoing& connection) {
  const auto found = outgoing_.find(connection.peer());
  if (found == outgoing_.end() || found->second.get() != &connection) return;
  recent_ = nullptr;
  ended_outgoing_.push_back(std::move(found->second));
  outgoing_.erase(found);
}

void Endpoint::has_ended(const Incoming& connection) {
  const auto found = incoming_.find(&connection);
  if (found == incoming_.end()) return;
  ended_incoming_.push_back(std::move(found->second));
  incoming_.erase(found);
}

// ---- FI_MSG ----

namespace {

// Of receives that look for a message that has come.
constexpr std::uint64_t kLooks = FI_PEEK | FI_CLAIM | FI_DISCARD;

// 0, or what is wrong with the flags of a receive.
int check_receive(std::uint64_t flags, std::uint64_t known) {
  if ((flags & ~(known | kLooks | FI_MORE)) != 0) return -FI_EBADFLAGS;
  return (flags & FI_DISCARD) != 0 && (flags & (FI_PEEK | FI_CLAIM)) == 0 ? -FI_EBADFLAGS : 0;
}

ssize_t send(fid_ep* ep, const Outbound& message) {
  return guarded([&] { return endpoint_of(ep).send(message); });
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
  return guarded([&] { return endpoint_of(ep).receive(inbound); });
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
                         {.context = context, .flags = endpoint_of(ep).rx_flags(), .from = from});
        },
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           void* context) {
          return receive(ep, {.iov = iov,
                              .desc = desc,
                              .count = count,
                              .context = context,
                              .flags = endpoint_of(ep).rx_flags(),
                              .from = from});
        },
    .recvmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      if (const auto error = check_receive(flags, kRdmRxOpFlags); error != 0) return error;
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
                      {.context = context, .flags = endpoint_of(ep).tx_flags(), .to = to});
        },
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           void* context) {
          return send(ep, {.iov = iov,
                           .desc = desc,
                           .count = count,
                           .context = context,
                           .flags = endpoint_of(ep).tx_flags(),
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
                       .flags = endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                       .data = data,
                       .to = to});
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to) {
          return send(ep, buffer, length, nullptr,
                      {.flags = FI_INJECT | kUntold | FI_REMOTE_CQ_DATA, .data = data, .to = to});
        },
};

// FI_TAGGED of endpoints of FI_EP_RDM.

namespace {

// FI_MULTI_RECV is for messages without tags.
std::uint64_t rx_flags(fid_ep* ep) {
  return endpoint_of(ep).rx_flags() & ~FI_MULTI_RECV;
}

}  // namespace

fi_ops_tagged tagged_calls{
    .size = sizeof(fi_ops_tagged),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           std::uint64_t tag, std::uint64_t ignore, void* context) {
          return receive(ep, buffer, length, desc,
                         {.context = context,
                          .flags = rx_flags(ep),
                          .from = from,
                          .tagged = true,
                          .tag = tag,
                          .ignore = ignore});
        },
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t tag, std::uint64_t ignore, void* context) {
          return receive(ep, {.iov = iov,
                              .desc = desc,
                              .count = count,
                              .context = context,
                              .flags = rx_flags(ep),
                              .from = from,
                              .tagged = true,
                              .tag = tag,
                              .ignore = ignore});
        },
    .recvmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if (const auto error = check_receive(flags, kRxOpFlags); error != 0) return error;
      return receive(ep, {.iov = msg->msg_iov,
                          .desc = msg->desc,
                          .count = msg->iov_count,
                          .context = msg->context,
                          .flags = flags,
                          .from = msg->addr,
                          .tagged = true,
                          .tag = msg->tag,
                          .ignore = msg->ignore});
    },
    .send =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           std::uint64_t tag, void* context) {
          return send(ep, buffer, length, desc,
                      {.context = context,
                       .flags = endpoint_of(ep).tx_flags(),
                       .to = to,
                       .tagged = true,
                       .tag = tag});
        },
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t tag, void* context) {
          return send(ep, {.iov = iov,
                           .desc = desc,
                           .count = count,
                           .context = context,
                           .flags = endpoint_of(ep).tx_flags(),
                           .to = to,
                           .tagged = true,
                           .tag = tag});
        },
    .sendmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
      return send(ep, {.iov = msg->msg_iov,
                       .desc = msg->desc,
                       .count = msg->iov_count,
                       .context = msg->context,
                       .flags = flags,
                       .data = msg->data,
                       .to = msg->addr,
                       .tagged = true,
                       .tag = msg->tag});
    },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t tag) {
          return send(ep, buffer, length, nullptr,
                      {.flags = FI_INJECT | kUntold, .to = to, .tagged = true, .tag = tag});
        },
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t tag, void* context) {
          return send(ep, buffer, length, desc,
                      {.context = context,
                       .flags = endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                       .data = data,
                       .to = to,
                       .tagged = true,
                       .tag = tag});
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t tag) {
          return send(ep, buffer, length, nullptr,
                      {.flags = FI_INJECT | kUntold | FI_REMOTE_CQ_DATA,
                       .data = data,
                       .to = to,
                       .tagged = true,
                       .tag = tag});
        },
};

// FI_RMA of endpoints of FI_EP_RDM.

namespace {

// Both directions: `call` is &Endpoint::write or &Endpoint::read.
template <class Call>
ssize_t transfer(fid_ep* ep, Call call, Request&& request, fi_addr_t to, const Target& target,
                 std::uint64_t flags) {
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

}  // namespace

fi_ops_rma rma_calls{
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::read,
                          {.segments = one_segment(buffer, length, desc), .context = context}, from,
                          {address, key}, endpoint_of(ep).tx_flags());
        },
    .readv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::read, iov, desc, count,
                          {.segments = {}, .context = context}, from, {address, key},
                          endpoint_of(ep).tx_flags());
        },
    .readmsg = [](fid_ep* ep, const fi_msg_rma* msg,
                  std::uint64_t flags) { return transfer(ep, &Endpoint::read, *msg, flags); },
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::write,
                          {.segments = one_segment(buffer, length, desc), .context = context}, to,
                          {address, key}, endpoint_of(ep).tx_flags());
        },
    .writev =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::write, iov, desc, count,
                          {.segments = {}, .context = context}, to, {address, key},
                          endpoint_of(ep).tx_flags());
        },
    .writemsg = [](fid_ep* ep, const fi_msg_rma* msg,
                   std::uint64_t flags) { return transfer(ep, &Endpoint::write, *msg, flags); },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t address,
           std::uint64_t key) {
          return transfer(ep, &Endpoint::write, {.segments = one_segment(buffer, length, nullptr)},
                          to, {address, key}, FI_INJECT | kUntold);
        },
    .writedata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(
              ep, &Endpoint::write,
              {.segments = one_segment(buffer, length, desc), .context = context, .data = data}, to,
              {address, key}, endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t address, std::uint64_t key) {
          return transfer(ep, &Endpoint::write,
                          {.segments = one_segment(buffer, length, nullptr), .data = data}, to,
                          {address, key}, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

}  // namespace stp::fi::rdm
