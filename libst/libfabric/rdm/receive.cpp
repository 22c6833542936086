// SPDX-License-Identifier: BSD-3-Clause
// Receives, and what comes to them.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/cq.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {

Outcome Endpoint::outcome_of(const Message& message, const Receive& receive) const {
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
  if (message.source != 0) told.source = av_->find(message.source);
  return told;
}

void Endpoint::tell(Outcome& told, Shared* shared) {
  if (told.injected) return;  // it was discarded
  if (shared != nullptr && --shared->busy == 0 && shared->used_up) told.flags |= FI_MULTI_RECV;
  // The buffer is the program's again: it has to hear of it.
  if ((told.flags & FI_MULTI_RECV) != 0) told.told = true;
  reports_.complete(told);
}

void Endpoint::deliver(Message&& message, Receive&& receive) {
  const auto from = message.from;
  if (message.kind == Kind::kAnnounced && from != nullptr) {
    from->done_with(message);
    from->pull(message, std::move(receive));
    return;
  }
  auto outcome = outcome_of(message, receive);
  if (message.kind == Kind::kAnnounced)
    outcome.status = -ENOTCONN;  // it was claimed, and its sender has gone
  else
    scatter(message.bytes(), receive.segments, outcome.length);
  if (from != nullptr) from->done_with(message);
  tell(outcome, receive.shared.get());
}

Op& Endpoint::begin_receive(const Message& message, Receive&& receive) {
  auto& op = link_.take_op();
  static_cast<Outcome&>(op) = outcome_of(message, receive);
  op.shared = receive.shared;
  op.landing = shortened(receive.segments, op.length);
  return op;
}

void Endpoint::received(Op& op) {
  if (op.status == 0 && op.landing.count != 0) scatter(op.span.data, op.landing);
  tell(op, op.shared.get());
  link_.free_op(op);
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

// ---- calls ----

ssize_t Endpoint::receive(Inbound&& inbound) {
  std::lock_guard const lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  auto& receive = inbound.receive;
  if (directed_ && inbound.from != FI_ADDR_UNSPEC) {
    receive.source = av_->at(inbound.from);
    if (receive.source == 0) return -FI_EINVAL;
  }
  if ((receive.flags & FI_PEEK) != 0) return peek(receive);
  if ((receive.flags & FI_CLAIM) != 0) return claim(std::move(receive));
  if (matching_.receives() >= rx_size_) return -FI_EAGAIN;
  if ((receive.flags & FI_MULTI_RECV) == 0) {
    auto message = matching_.take_message(receive);
    if (message)
      deliver(std::move(*message), std::move(receive));
    else
      matching_.add(std::move(receive));
    return 0;
  }
  if (receive.segments.count != 1 || receive.segments.length == 0) return -FI_EINVAL;
  receive.shared = std::make_shared<Shared>();
  const auto waits = receive;
  matching_.add(std::move(receive));
  // As if what waits arrived now.
  while (!waits.shared->used_up) {
    auto message = matching_.take_message(waits);
    if (!message) break;
    auto part = receive_for(*message);
    deliver(std::move(*message), std::move(*part));
  }
  return 0;
}

ssize_t Endpoint::peek(const Receive& receive) {
  link_.progress();
  if (const auto* const found = matching_.find_message(receive); found == nullptr) {
    auto outcome = outcome_of({}, receive);
    outcome.tag = receive.tag;
    outcome.status = -ENOMSG;
    reports_.complete(outcome);
    return 0;
  } else {
    auto outcome = outcome_of(*found, receive);
    outcome.length = found->head.length;
    outcome.overflow = 0;
    outcome.told = true;
    reports_.complete(outcome);
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
  auto message = matching_.take_claimed(receive.context);
  if (!message) return -FI_EINVAL;
  if ((receive.flags & FI_DISCARD) != 0) {
    auto outcome = outcome_of(*message, receive);
    outcome.overflow = 0;
    discard(*message);
    reports_.complete(outcome);
    return 0;
  }
  deliver(std::move(*message), std::move(receive));
  return 0;
}

// Nobody wants it. The sender of an announced one waits to be read.
void Endpoint::discard(Message& message) {
  auto* const from = message.from;
  if (from == nullptr) return;
  from->done_with(message);
  if (message.kind == Kind::kAnnounced) from->pull(message, {.flags = kUntold});
}

ssize_t Endpoint::cancel(void* context) {
  std::lock_guard const lock(link_.mutex());
  auto receive = matching_.cancel(context);
  if (!receive) return -FI_ENOENT;
  auto outcome = outcome_of({}, *receive);
  outcome.tag = receive->tag;
  outcome.status = -ECANCELED;
  // Of a buffer of several messages, those that are on their way into it are told first or last.
  if (receive->shared) receive->shared->used_up = true;
  reports_.complete(outcome);
  return 0;
}

}  // namespace stp::fi::rdm
