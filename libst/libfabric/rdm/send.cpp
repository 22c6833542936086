// SPDX-License-Identifier: BSD-3-Clause
// Messages, writes and reads that an endpoint begins.
#include <cerrno>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {

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
  --outstanding_;
  if (op.injected) --injected_;
  link_.free_op(op);
  return -error_of(error);
}

void Endpoint::finish(Op& op) {
  --outstanding_;
  if (op.injected) --injected_;
  // A message that is lost is told of, whoever has sent it: its receiver waits for it.
  if (op.status != 0) op.injected = false;
  if (op.status == 0 && op.landing.count != 0) scatter(op.span.data, op.landing);
  reports_.complete(op);
  link_.free_op(op);
}

int Endpoint::take_note(Op& op) {
  Slots::Slot slot;
  if (const auto error = link_.slots().take(slot); error != 0) return error;
  op.note.slots = &link_.slots();
  op.note.memory = slot.memory;
  op.note.data = slot.data;
  return 0;
}

ssize_t Endpoint::send(const Outbound& message) {
  std::lock_guard const lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  const auto& request = message.request;
  const auto length = request.segments.length;
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (length > (inject ? kRdmInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  if (outstanding_ >= tx_size_) return -FI_EAGAIN;
  Outgoing* to = nullptr;
  if (const auto error = connection_to(message.to, to); error != 0) return error;

  const auto kind = FI_SEND | (message.tagged ? FI_TAGGED : FI_MSG);
  auto& op = begin(request, Direction::kSend, kind);
  if (const auto error = take_note(op); error != 0) return post(op, *to, error);
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
  if (!enabled_) return -FI_EOPBADSTATE;
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (request.segments.length > (inject ? kRdmInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  if (outstanding_ >= tx_size_) return -FI_EAGAIN;
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
    error = take_note(op);
    if (error == 0)
      store({.data = request.data, .length = op.length, .flags = kWithData}, op.note.data);
  }
  return post(op, *to, error);
}

ssize_t Endpoint::read(const Request& request, fi_addr_t address, const Target& target) {
  std::lock_guard const lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  if (request.segments.length > kMostMessage) return -FI_EMSGSIZE;
  if (outstanding_ >= tx_size_) return -FI_EAGAIN;
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

}  // namespace stp::fi::rdm
