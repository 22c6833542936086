// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint of FI_EP_RDM is made of, its connections, its receives, and calls that no other
// one has.
#include "libst/libfabric/rdm/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"
#include "libst/managed/host_of_peer.h"

namespace stp::fi::rdm {
namespace {

constexpr std::size_t kLeastLeft = 4096;
constexpr std::size_t kWordSize = 64, kPeersOfBlock = 16;
constexpr unsigned kBuriedAtOnce = 16;
static_assert(kWordSize >= kHead);
// Any sender.
constexpr Address kAny{};

// Ends the last of connections that have ended. False: there is none.
template <class Ended>
bool bury_one(Ended& ended) {
  if (ended.empty()) return false;
  ended.back()->close();
  ended.pop_back();
  return true;
}

// A buffer of FI_MULTI_RECV is one piece of memory.
bool is_for_several(const Receive& receive) {
  return receive.segments.count == 1 && receive.segments.length != 0;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : AnyEndpoint(domain, info, kRdmOffer, &tagged_calls, context),
      least_left_(kLeastLeft),
      most_kept_(parameters().rdm_kept),
      directed_((info.caps & FI_DIRECTED_RECV) != 0),
      buffers_(link_.domain(), kBuffer, Buffers::kOfBlock),
      words_(link_.domain(), kWordSize, kWords * kPeersOfBlock),
      lanes_(link_.domain()) {}

int Endpoint::open(Domain& domain, const fi_info& info, void* context, fid_ep*& out) {
  if (const auto error = check_sizes(info); error != 0) return error;
  out = new Endpoint(domain, info, context);
  return 0;
}

void Endpoint::end_connections(LinkLock& lock) {
  // The thread that dials may end some of them meanwhile.
  std::vector<const Outgoing*> all;
  for (const auto& [place, connection] : outgoing_) all.push_back(connection.get());
  for (const auto& connection : ended_outgoing_) all.push_back(connection.get());
  for (const auto* const connection : all) link_.dialers().stop(lock, *connection);
  if (listener_ != nullptr) stm_listener_close(listener_);
  for (const auto& [place, connection] : outgoing_) connection->close();
  for (const auto& [key, connection] : incoming_) connection->close();
  link_.drain();
  for (const auto& [place, connection] : outgoing_) connection->give_up(-ECANCELED);
  for (const auto& [key, connection] : incoming_) connection->give_up(-ECANCELED);
  bury();
  link_.stop_cleaning(*this);
  outgoing_.clear();
  incoming_.clear();
  buffers_.clear();
  words_.clear();
  lanes_.clear();
  for (const auto& receive : matching_.clear()) give_up(receive, -ECANCELED);
  if (av_ != nullptr) av_->unuse();
}

bool Endpoint::lingers() const {
  return injected_ != 0 ||
         std::ranges::any_of(outgoing_, [](const auto& each) { return each.second->is_sending(); });
}

// No event refers to those that have ended: their last one has been taken. What they have, as
// channels of a stpd, others may need.
void Endpoint::bury() {
  while (bury_one(ended_outgoing_) || bury_one(ended_incoming_))
    ;
}

// A few at a time, as each is a request to a stpd.
void Endpoint::clean_up() {
  if (closing_) return;
  for (auto left = kBuriedAtOnce; left != 0; --left)
    if (!bury_one(ended_outgoing_) && !bury_one(ended_incoming_)) return;
  link_.clean_up_later(*this);
}

int Endpoint::bind_other(fid_t other, std::uint64_t flags) {
  if (other->fclass != FI_CLASS_AV) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  if (av_ != nullptr) return -FI_EINVAL;
  av_ = &object_of<Av, fid_av>(other);
  av_->use();
  return 0;
}

int Endpoint::enable() {
  if (av_ == nullptr) return -FI_ENOAV;
  if (!reports_.has_queue() && !reports_.has_counter()) return -FI_ENOCQ;
  if (enabled_) return -FI_EOPBADSTATE;
  if (const auto error = listen_at(link_, name_, *this, listener_); error != 0) return error;
  enabled_ = true;
  return 0;
}

int Endpoint::get_option(int name, void* value, std::size_t* length) {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  const LinkLock lock(link_.mutex());
  return tell_option(least_left_, value, length);
}

int Endpoint::set_option(int name, const void* value, std::size_t length) {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (length != sizeof(std::size_t)) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  std::memcpy(&least_left_, value, sizeof least_left_);
  return 0;
}

int Endpoint::get_name(void* address, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  if (!enabled_ && name_.port == 0) return -FI_EOPBADSTATE;  // it gets a port with fi_enable
  return tell_address(name(), format_, address, length);
}

// ---- connections ----

int Endpoint::way_to(fi_addr_t to, SendingConnection*& way) {
  if (!enabled_) return -FI_EOPBADSTATE;
  Outgoing* found = nullptr;
  const auto error = connection_to(to, found);
  way = found;
  return error;
}

[[gnu::noinline]] int Endpoint::connection_to(fi_addr_t to, Outgoing*& out) {
  out = recent_to(to);
  if (out != nullptr) return 0;
  if (!ended_outgoing_.empty() || !ended_incoming_.empty()) bury();
  const auto place = av_->at(to);
  if (place.port == 0) return -FI_EINVAL;
  forget_losses();
  if (const auto status = losses_.take_for_send(place); status != 0) return -error_of(status);
  if (const auto found = outgoing_.find(place); found != outgoing_.end()) {
    out = recent_ = found->second.get();
    recent_to_ = to;
    recent_as_of_ = losses_.empty() ? av_->version() : 0;
    return 0;
  }
  if (outgoing_.size() >= kMostConnections) {
    inform(FI_LOG_EP_CTRL, "the endpoint sends to too many peers");
    return -FI_ENOSPC;
  }
  const auto made = outgoing_.emplace(place, std::make_unique<Outgoing>(*this, place)).first;
  const auto forget = [&] {
    made->second->close();
    outgoing_.erase(made);
  };
  try {
    if (const auto error = made->second->dial(); error != 0) {
      forget();
      if (link_.comes_back(error)) return -FI_EAGAIN;
      return explain(FI_LOG_EP_CTRL, "a connection", error);
    }
  } catch (...) {
    forget();
    throw;
  }
  out = made->second.get();
  return 0;
}

void Endpoint::requested(stm_connection_t connection) {
  while (!closing_ && bury_one(ended_incoming_))  // whoever comes and goes leaves nothing
    ;
  auto data = cm_data_of(connection);
  auto peer = unpack_request(data, kMagic);
  if (peer) peer = link_.canonical_from_peer(*peer);
  const auto* const other = peer ? nullptr : why_other_kind(data, kCmMagic);
  const auto host = places_.of(managed::host_of(connection));
  const auto why = [&]() -> const char* {
    if (closing_) return "the endpoint is being closed";
    if (!peer) return other != nullptr ? other : "it is no endpoint of FI_EP_RDM";
    if (!places_.is_free(*host, {incoming_.size(), matching_.left_bytes()}))
      return "too many peers send to the endpoint, or its host has many of the places";
    return nullptr;
  }();
  const auto reject = [&](const char* reason) {
    const auto tell = other != nullptr ? warn_seldom : inform_seldom;
    tell(++rejected_, "who asks to connect is rejected", reason);
    stm_reject(connection, nullptr, 0);
  };
  if (why != nullptr) return reject(why);
  // Whatever follows is for those who know more.
  auto words = words_in(data);
  Incoming::Knows knows;
  knows.lanes = take_word(words, kKnowsLanes);
  knows.several = knows.lanes && take_word(words, kSendsSeveral);
  auto made = std::make_unique<Incoming>(*this, connection, host, *peer, knows);
  if (const auto error = made->accept(); error != 0) return reject(st_strerror(error));
  losses_.end_silence(*peer);
  const auto* const key = made.get();
  incoming_.emplace(key, std::move(made));
}

void Endpoint::has_ended(const Outgoing& connection) {
  const auto found = outgoing_.find(connection.peer());
  if (found == outgoing_.end() || found->second.get() != &connection) return;
  recent_ = nullptr;
  forget_recent();
  ended_outgoing_.push_back(std::move(found->second));
  outgoing_.erase(found);
  link_.clean_up_later(*this);
}

void Endpoint::has_ended(const Incoming& connection) {
  const auto found = incoming_.find(&connection);
  if (found == incoming_.end()) return;
  forget_recent();
  ended_incoming_.push_back(std::move(found->second));
  incoming_.erase(found);
  link_.clean_up_later(*this);
}

// ---- receives, and what comes to them ----

fi_addr_t Endpoint::number_of(const Address& peer) const {
  return av_->find(peer);
}

void Endpoint::written(const Message& message) {
  reports_.tell_written(message.head.length, message.head.data, av_->find(message.source));
}

void Endpoint::accessed(const Head& head) {
  if (!counts_accesses_) return;
  const auto reads = (head.flags & kReads) != 0;
  reports_.count_access(reads);
  domain_.count_access(head.id, reads);
}

// Runs once per receive, so it is one function.
[[gnu::flatten]] ssize_t Endpoint::receive(const Inbound& inbound) {
  constexpr auto kSpecial = FI_PEEK | FI_CLAIM | FI_MULTI_RECV;
  if (inbound.count > kSegments) return -FI_EINVAL;
  const HoldLink lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  const auto* source = &kAny;
  if (directed_ && inbound.from != FI_ADDR_UNSPEC) {
    source = &av_->at(inbound.from);
    if (source->port == 0) return -FI_EINVAL;
  }
  if ((inbound.flags & kSpecial) == 0 && matching_.has_none(inbound.tagged) && losses_.empty() &&
      matching_.has_room(kMostPosted)) {
    read_receive(inbound, *source, matching_.add_place(inbound.tagged));
    return 0;
  }
  Receive receive;
  read_receive(inbound, *source, receive);
  return receive_specially(std::move(receive));
}

// Something waits for it, or is lost, or it is none that waits.
[[gnu::noinline]] ssize_t Endpoint::receive_specially(Receive&& receive) {
  forget_losses();
  if ((receive.flags & FI_PEEK) != 0) return peek(receive);
  if ((receive.flags & FI_CLAIM) != 0) return claim(std::move(receive));
  if (matching_.receives() >= kMostPosted) return -FI_EAGAIN;
  if ((receive.flags & FI_MULTI_RECV) == 0) {
    auto message = matching_.take_message(receive);
    if (message)
      deliver(std::move(*message), std::move(receive));
    else if (const auto status = losses_.take_for_receive(receive.source); status != 0)
      return -error_of(status);
    else
      matching_.add(std::move(receive));
    return 0;
  }
  if (!is_for_several(receive)) return -FI_EINVAL;
  receive.shared = std::make_shared<Shared>();
  return receive_several(std::move(receive));
}

ssize_t Endpoint::receive_several(Receive&& receive) {
  const auto waits = receive;
  matching_.add(std::move(receive));
  // As if what waits arrived now.
  while (!waits.shared->used_up) {
    auto message = matching_.take_message(waits);
    if (!message) break;
    auto part = receive_for(*message);
    deliver(std::move(*message), std::move(*part));
  }
  if (waits.shared->used_up) return 0;
  // It alone names that peer: others have failed.
  if (const auto status = losses_.take_for_receive(waits.source); status != 0)
    give_up_receives(waits.source, status);
  return 0;
}

ssize_t Endpoint::peek(const Receive& receive) {
  link_.progress();
  if (const auto* const found = matching_.find_message(receive); found == nullptr) {
    auto outcome = outcome_of({}, receive);
    outcome.tag = receive.tag;
    const auto lost = losses_.take_for_receive(receive.source);
    outcome.status = lost != 0 ? lost : -ENOMSG;
    reports_.tell(outcome);
    return 0;
  } else {
    auto outcome = outcome_of(*found, receive);
    outcome.length = found->head.length;
    outcome.overflow = 0;
    outcome.told = true;
    reports_.tell(outcome);
  }
  if ((receive.flags & (FI_CLAIM | FI_DISCARD)) == 0) return 0;
  auto message = matching_.take_message(receive);
  if ((receive.flags & FI_CLAIM) != 0)
    matching_.claim(receive.context, std::move(*message));
  else
    discard(*message);
  return 0;
}

ssize_t Endpoint::claim(Receive&& receive) {
  const auto several = (receive.flags & (FI_MULTI_RECV | FI_DISCARD)) == FI_MULTI_RECV;
  if (several && !is_for_several(receive)) return -FI_EINVAL;
  auto message = matching_.take_claimed(receive.context);
  if (!message) return -FI_EINVAL;
  if ((receive.flags & FI_DISCARD) != 0) {
    auto outcome = outcome_of(*message, receive);
    outcome.overflow = 0;
    discard(*message);
    reports_.complete(outcome);
    return 0;
  }
  if (!several) {
    deliver(std::move(*message), std::move(receive));
    return 0;
  }
  receive.shared = std::make_shared<Shared>();
  auto part = Matching::part_of(receive, *message, least_left_);
  const auto used_up = part.shared->used_up;
  deliver(std::move(*message), std::move(part));
  return used_up ? 0 : receive_several(std::move(receive));
}

// Nobody wants it. The sender of an announced one waits to be read.
void Endpoint::discard(Message& message) {
  auto* const from = message.from;
  if (from == nullptr) return;
  from->done_with(message);
  if (message.announced) from->pull(message, {.flags = kUntold});
}

// ---- losses ----

bool Endpoint::give_up_receives(const Address& peer, int status) {
  const auto receives = matching_.take_receives_from(peer);
  for (const auto& receive : receives) give_up(receive, status);
  return !receives.empty();
}

bool Endpoint::can_name(const Address& peer) const {
  return av_->find(peer) != FI_ADDR_NOTAVAIL;
}

// Losses are those of addresses in the vector, so there are no more of them.
void Endpoint::forget_losses() {
  if (losses_.empty() || std::exchange(losses_as_of_, av_->version()) == av_->version()) return;
  losses_.forget_removed([this](const Address& each) { return av_->has_since(each); });
}

// A peer that has gone in good order may have taken the message, and sends nothing more anyway.
void Endpoint::lost(const Address& peer, int status) {
  if (closing_ || status == -ENOTCONN || status == -ECANCELED) return;
  forget_losses();
  if (!give_up_receives(peer, status) && can_name(peer))
    losses_.add_sent(peer, status, av_->has_since(peer));
  forget_recent();
}

void Endpoint::tell_failed(const Address& peer, int status) {
  if (!closing_) fi::tell_failed(++failed_, peer_name(peer), status);
}

// Its messages come on another connection, if it has made one since. Receives that are posted later
// fail, too.
void Endpoint::fell_silent(const Address& peer, int status) {
  if (closing_ || !can_name(peer)) return;
  auto is_there = false;
  for (const auto& [key, each] : incoming_) {
    if (each->source() != peer) continue;
    is_there = true;
    each->tell_silent(status);
  }
  if (is_there) return;
  if (give_up_receives(peer, status)) tell_failed(peer, status);
  forget_losses();
  losses_.add_silence(peer, status, av_->has_since(peer));
  forget_recent();
}

// ---- FI_TAGGED ----

// The calls for messages with tags. MPI makes two of them for each message, so those of one buffer
// are one function each, down to the managed API.

namespace {

Endpoint& tagged_end(fid_ep* ep) {
  return static_cast<Endpoint&>(*ep);
}

// FI_MULTI_RECV is for messages without tags.
std::uint64_t tagged_rx_flags(fid_ep* ep) {
  return tagged_end(ep).rx_flags() & ~FI_MULTI_RECV;
}

ssize_t send_tagged(fid_ep* ep, const Outbound& message) {
  if (lacks_some(message.iov, message.count)) return -FI_EINVAL;
  return guarded([&] { return tagged_end(ep).send(message); });
}

ssize_t receive_tagged(fid_ep* ep, const Inbound& inbound) {
  if (lacks_landing(inbound)) return -FI_EINVAL;
  return guarded([&] { return tagged_end(ep).receive(inbound); });
}

// From one buffer.
[[gnu::noinline]] ssize_t send_one(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                                   std::uint64_t flags, std::uint64_t data, fi_addr_t to,
                                   std::uint64_t tag, void* context) {
  const iovec iov{const_cast<void*>(buffer), length};
  return send_tagged(ep, {.iov = &iov,
                          .desc = &desc,
                          .count = 1,
                          .context = context,
                          .flags = flags,
                          .data = data,
                          .to = to,
                          .tagged = true,
                          .tag = tag});
}

// The same, without what few messages need.
ssize_t send_if_short(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                      std::uint64_t flags, fi_addr_t to, std::uint64_t tag, void* context) {
  return guarded([&]() -> ssize_t {
    const iovec iov{const_cast<void*>(buffer), length};
    const auto error = tagged_end(ep).send_at_once({.iov = &iov,
                                                    .count = 1,
                                                    .context = context,
                                                    .flags = flags,
                                                    .to = to,
                                                    .tagged = true,
                                                    .tag = tag});
    if (error == 0) return 0;
    return send_one(ep, buffer, length, desc, flags, 0, to, tag, context);
  });
}

[[gnu::flatten]] ssize_t call_send(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                                   fi_addr_t to, std::uint64_t tag, void* context) {
  return send_if_short(ep, buffer, length, desc, tagged_end(ep).tx_flags(), to, tag, context);
}

[[gnu::flatten]] ssize_t call_inject(fid_ep* ep, const void* buffer, std::size_t length,
                                     fi_addr_t to, std::uint64_t tag) {
  return send_if_short(ep, buffer, length, nullptr, FI_INJECT | kUntold, to, tag, nullptr);
}

[[gnu::flatten]] ssize_t call_recv(fid_ep* ep, void* buffer, std::size_t length, void* desc,
                                   fi_addr_t from, std::uint64_t tag, std::uint64_t ignore,
                                   void* context) {
  const iovec iov{buffer, length};
  return receive_tagged(ep, {.iov = &iov,
                             .desc = &desc,
                             .count = 1,
                             .context = context,
                             .flags = tagged_rx_flags(ep),
                             .from = from,
                             .tagged = true,
                             .tag = tag,
                             .ignore = ignore});
}

}  // namespace

fi_ops_tagged tagged_calls{
    .size = sizeof(fi_ops_tagged),
    .recv = call_recv,
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t tag, std::uint64_t ignore, void* context) {
          return receive_tagged(ep, {.iov = iov,
                                     .desc = desc,
                                     .count = count,
                                     .context = context,
                                     .flags = tagged_rx_flags(ep),
                                     .from = from,
                                     .tagged = true,
                                     .tag = tag,
                                     .ignore = ignore});
        },
    .recvmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if (const auto error = check_receive(tagged_end(ep).offer(), flags, kRxOpFlags); error != 0)
        return error;
      return receive_tagged(ep, {.iov = msg->msg_iov,
                                 .desc = msg->desc,
                                 .count = msg->iov_count,
                                 .context = msg->context,
                                 .flags = flags,
                                 .from = msg->addr,
                                 .tagged = true,
                                 .tag = msg->tag,
                                 .ignore = msg->ignore});
    },
    .send = call_send,
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t tag, void* context) {
          return send_tagged(ep, {.iov = iov,
                                  .desc = desc,
                                  .count = count,
                                  .context = context,
                                  .flags = tagged_end(ep).tx_flags(),
                                  .to = to,
                                  .tagged = true,
                                  .tag = tag});
        },
    .sendmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
      return send_tagged(ep, {.iov = msg->msg_iov,
                              .desc = msg->desc,
                              .count = msg->iov_count,
                              .context = msg->context,
                              .flags = flags,
                              .data = msg->data,
                              .to = msg->addr,
                              .tagged = true,
                              .tag = msg->tag});
    },
    .inject = call_inject,
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t tag, void* context) {
          return send_one(ep, buffer, length, desc, tagged_end(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                          data, to, tag, context);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t tag) {
          return send_one(ep, buffer, length, nullptr, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA,
                          data, to, tag, nullptr);
        },
};

}  // namespace stp::fi::rdm
