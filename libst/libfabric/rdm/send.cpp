// SPDX-License-Identifier: BSD-3-Clause
// Messages, writes, reads and atomic operations that an endpoint begins.
#include <cerrno>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {

int Endpoint::may_post(std::uint64_t flags) const {
  if (!enabled_) return -FI_EOPBADSTATE;
  // The managed API does not know of the steps to come.
  if ((flags & FI_FENCE) != 0 && repeating_ != 0) return -FI_EAGAIN;
  return outstanding_ < tx_size_ ? 0 : -FI_EAGAIN;
}

Op& Endpoint::begin(const Request& request, Direction direction, std::uint64_t kind) {
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

ssize_t Endpoint::post(Op& op, Outgoing& to, int error) {
  if (error == 0) error = to.post(op);
  if (error == 0) return 0;
  leaves(op);
  link_.free_op(op);
  return -error_of(error);
}

void Endpoint::leaves(const Op& op) {
  --outstanding_;
  if (op.injected) --injected_;
  if (op.atomic && op.atomic->repeats()) --repeating_;
}

void Endpoint::finish(Op& op) {
  leaves(op);
  // A message that is lost is told of, whoever has sent it: its receiver waits for it.
  if (op.status != 0) op.injected = false;
  if (op.status == 0 && op.landing.count != 0) scatter(op.span.data, op.landing);
  reports_.complete(op);
  link_.free_op(op);
}

ssize_t Endpoint::send(const Outbound& message) {
  std::lock_guard const lock(link_.mutex());
  const auto& request = message.request;
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto length = request.segments.length;
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (length > (inject ? kRdmInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  Outgoing* to = nullptr;
  if (const auto error = connection_to(message.to, to); error != 0) return error;

  const auto kind = FI_SEND | (message.tagged ? FI_TAGGED : FI_MSG);
  auto& op = begin(request, Direction::kSend, kind);
  if (const auto error = link_.slots().take(op.note); error != 0) return post(op, *to, error);
  Head head{.tag = message.tagged ? message.tag : 0, .length = length};
  if (message.tagged) head.flags |= kTagged;
  if ((request.flags & FI_REMOTE_CQ_DATA) != 0) {
    head.flags |= kWithData;
    head.data = request.data;
  }
  store(head, op.note.data);
  // Who has read an announced message has it in the memory of its receive.
  const auto delivered = (request.flags & FI_DELIVERY_COMPLETE) != 0 && !inject;
  if (length > kEagerMost || delivered) {
    op.action = Action::kAnnounce;
    return post(op, *to, link_.span_of(request.segments, true, op.span));
  }
  op.action = Action::kMessage;
  gather(request.segments, op.note.data + kHead);
  return post(op, *to, 0);
}

ssize_t Endpoint::write(const Request& request, fi_addr_t address, const Target& target) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (request.segments.length > (inject ? kRdmInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  Outgoing* to = nullptr;
  if (const auto error = connection_to(address, to); error != 0) return error;

  auto& op = begin(request, Direction::kWrite, FI_RMA | FI_WRITE);
  op.action = Action::kWrite;
  op.remote_key = static_cast<std::uint32_t>(target.key);
  op.remote_address = target.address;
  auto segments = request.segments;
  if (inject) {  // the bytes are copied
    segments.desc = {};
  }
  auto error = link_.span_of(segments, true, op.span);
  if (error == 0 && (request.flags & FI_REMOTE_CQ_DATA) != 0) {
    error = link_.slots().take(op.note);
    if (error == 0)
      store({.data = request.data, .length = op.length, .id = op.remote_key, .flags = kWithData},
            op.note.data);
  }
  return post(op, *to, error);
}

ssize_t Endpoint::read(const Request& request, fi_addr_t address, const Target& target) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  if (request.segments.length > kMostMessage) return -FI_EMSGSIZE;
  Outgoing* to = nullptr;
  if (const auto error = connection_to(address, to); error != 0) return error;

  auto& op = begin(request, Direction::kRead, FI_RMA | FI_READ);
  op.action = Action::kRead;
  op.remote_key = static_cast<std::uint32_t>(target.key);
  op.remote_address = target.address;
  if (op.length == 0) {  // there is nothing to get
    finish(op);
    return 0;
  }
  const auto error = link_.span_of(request.segments, false, op.span);
  if (op.span.data != request.segments.iov[0].iov_base) op.landing = request.segments;
  return post(op, *to, error);
}

ssize_t Endpoint::fetch(const Request& request, fi_addr_t address, const Target& target,
                        const Function& function) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  Outgoing* to = nullptr;
  if (const auto error = connection_to(address, to); error != 0) return error;

  const auto reads = function.kind != Function::Kind::kPlain;
  auto& op = begin(request, reads ? Direction::kRead : Direction::kWrite,
                   FI_ATOMIC | (reads ? FI_READ : FI_WRITE));
  op.action = Action::kAtomic;
  const auto error = prepare_atomic(link_, op, target, function);
  if (op.atomic->repeats()) ++repeating_;
  return post(op, *to, error);
}

}  // namespace stp::fi::rdm
