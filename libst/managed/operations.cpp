// SPDX-License-Identifier: BSD-3-Clause
// Operations: any thread may post them. They begin in the order of posting.
#include <algorithm>
#include <cstring>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

using Kind = Operation::Kind;

std::uint32_t event_kind(Kind kind) {
  switch (kind) {
    case Kind::kSend:
      return STM_SEND;
    case Kind::kRead:
      return STM_READ;
    case Kind::kServe:
      return STM_SERVED;
    case Kind::kPut:
      return STM_PUT;
    case Kind::kGet:
      return STM_GET;
    case Kind::kFetch:
      return STM_FETCH;
  }
  return 0;
}

std::uint16_t wire_flags(const Operation& operation) {
  return (operation.flags & STM_URGENT) != 0 ? wire::flag::kInterrupt : std::uint16_t{0};
}

unsigned needed_access(Kind kind) {
  if (kind == Kind::kPut) return STM_REMOTE_WRITE;
  return kind == Kind::kGet ? STM_REMOTE_READ : STM_REMOTE_ATOMIC;
}

}  // namespace

int Connection::post(const Operation& operation) {
  switch (state_.state()) {
    case State::kConnecting:
    case State::kAsking:
    case State::kAccepting:
    case State::kUp:
      break;
    case State::kDraining:
    case State::kClosing:
      return -ESHUTDOWN;
    case State::kEnding:
    case State::kEnded:
      return reason_ != 0 ? reason_ : -ENOTCONN;
    case State::kIdle:
    case State::kExpected:
    case State::kRequested:
    case State::kRejecting:
      return -ENOTCONN;
  }
  if (operations_.size() >= kMaxOutstanding || !outlets_.sends.reserve())
    return confirm_quiet_puts(), -EAGAIN;
  operations_.add(operation).posted = posted_++;
  if (state_ != State::kUp) return 0;
  sequencer_->expire(domain_->time());
  begin_operations();
  send_soon();
  domain_->look_before(*this);
  return 0;
}

void Connection::begin_operations() {
  if (state_ != State::kUp && state_ != State::kDraining) return;
  while (auto* const next = operations_.waiting())
    if (begin(*next) == Begun::kLater) return;
}

Connection::Begun Connection::begin(Operation& operation) {
  if ((operation.flags & STM_FENCE) != 0 && operations_.oldest() != &operation) {
    sequencer_->confirm_puts();
    return Begun::kLater;
  }
  const auto error = try_begin(operation);
  if (error == -EAGAIN) return Begun::kLater;
  STP_ASSERT(!operation.begun && operations_.waiting() == &operation,
             "operations begin once, in the order of posting");
  operation.begun = true;
  operations_.begun();
  if (error != 0) complete(operation, error);
  return Begun::kYes;
}

// True if the completion may come late: the program asked for no event, and the queue has plenty of
// places.
bool Connection::may_be_quiet(const Operation& operation) const {
  return (operation.flags & STM_QUIET) != 0 && outlets_.sends.has_plenty();
}

unsigned Connection::quiet_uses(const Memory& memory) const {
  unsigned uses = 0;
  const auto* operation = operations_.oldest();
  for (; operation != nullptr; operation = OperationList::next(*operation))
    uses += operation->begun && operation->memory == &memory && (operation->flags & STM_QUIET) != 0;
  return uses;
}

void Connection::confirm_quiet_puts() {
  if (!sequencer_ || operations_.empty()) return;
  sequencer_->confirm_puts();
  send_soon();
}

int Connection::try_begin(Operation& operation) {
  switch (operation.kind) {
    case Kind::kSend:
      return begin_send(operation);
    case Kind::kRead:
      return sequencer_->read(
          operation.id, operation.memory->landing(endpoint_, operation.ptr, operation.length));
    case Kind::kServe:
      return begin_write(operation);
    case Kind::kPut:
    case Kind::kGet:
    case Kind::kFetch:
      break;
  }
  return begin_remote(operation);
}

int Connection::begin_send(Operation& operation) {
  if (goes_by_ring(operation.length)) return begin_eager(operation);
  return begin_write(operation);
}

// The ring saves a round trip and costs two copies. Among other Writes, the round trip of a long
// message costs no time.
bool Connection::goes_by_ring(std::uint64_t length) const {
  constexpr std::uint64_t kLong = eager_most(2);
  return eager_out_.has_room(length) && (length <= kLong || !writes_.any());
}

int Connection::begin_write(Operation& operation) {
  if (!writes_.may_begin()) return -EAGAIN;
  operation.fetch();
  const auto error = operation.kind == Kind::kSend
                         ? sequencer_->write(operation.id, operation.source(), operation.length,
                                             {.tag = operation.tag, .flags = wire_flags(operation)})
                         : sequencer_->serve_read(operation.request, operation.id,
                                                  operation.source(), operation.length);
  if (error == 0) operation.write = writes_.begin();
  return error;
}

int Connection::begin_eager(Operation& operation) {
  const auto slot = eager_out_.use(operation.length);
  auto* const at = staging_.eager_out(slot);
  const auto error = sequencer_->put(operation.id, eager_ring_, std::uint64_t{slot} * kEagerSlot,
                                     staging_.memory->at(at), kEagerHead + operation.length,
                                     {.flags = wire::flag::kInterrupt,
                                      .quiet = may_be_quiet(operation) && eager_out_.has_plenty()});
  if (error != 0) {  // the peer has ended its eager ring, or this side gave up using it
    eager_out_.close();
    return begin_write(operation);
  }
  // The message is sent when the requests are handed to the Node, so it may still be filled here.
  operation.slot = slot;
  EagerHead head;
  head.message = operation.message = sequencer_->take_message();
  head.length = static_cast<std::uint32_t>(operation.length);
  head.tag = operation.tag;
  head.taken = eager_in_.tell();
  encode(head, at);
  if (operation.length != 0) std::memcpy(at + kEagerHead, operation.ptr, operation.length);
  operation.eager = true;
  return 0;
}

int Connection::begin_remote(Operation& operation) {
  auto* const remote = this->remote(operation.key);
  if (remote == nullptr || remote->state == Remote::State::kAsked) return -EAGAIN;
  if (remote->state == Remote::State::kClosed) return remote->status;
  const auto error = access(operation, remote->region);
  if (error != 0) return error;
  operation.remote_uses = &remote->operations;
  ++remote->operations;
  return 0;
}

int Connection::access(const Operation& operation, const RemoteRegion& region) {
  const auto needed = needed_access(operation.kind);
  if ((region.access & needed) == 0) return -EACCES;
  const auto offset = operation.address - region.base;
  if (operation.address < region.base || offset > region.length ||
      operation.length > region.length - offset)
    return -ERANGE;
  if (operation.kind == Kind::kPut) {
    operation.fetch();
    return sequencer_->put(operation.id, region, offset, operation.source(), operation.length,
                           {.flags = wire_flags(operation), .quiet = may_be_quiet(operation)});
  }
  const auto landing = operation.memory->landing(endpoint_, operation.ptr, operation.length);
  if (operation.kind == Kind::kGet) return sequencer_->get(operation.id, region, offset, landing);
  return sequencer_->fetch(operation.id, region, offset, operation.function, operation.operand,
                           operation.compare, landing);
}

void Connection::complete(Operation& operation, int status, std::uint64_t length,
                          std::uint32_t message) {
  if (operation.write != 0) writes_.complete(operation.write);
  STP_ASSERT(operation.remote_uses == nullptr || *operation.remote_uses > 0,
             "the peer's region is in use by what completes");
  if (operation.remote_uses != nullptr) --*operation.remote_uses;
  if (status == 0) operation.store();
  if (status == 0 && (operation.flags & STM_QUIET) != 0) {
    operations_.remove(operation);
    outlets_.sends.release();
    domain_->places_freed();
    return;
  }
  auto told = event(event_kind(operation.kind), status, operation.context);
  told.length = length;
  // Message 1 of each side is the handshake's. The program's messages are counted from 1.
  told.message = message > 0 ? message - 1 : 0;
  operations_.remove(operation);
  outlets_.sends.push(told);
}

bool Connection::withdraw(const Memory& memory) {
  const auto lands = [&](const auto& entry) {
    return !entry.second.done && entry.second.receive.memory.is(memory);
  };
  const auto* operation = operations_.oldest();
  while (operation != nullptr && operation->memory != &memory)
    operation = OperationList::next(*operation);
  if (operation == nullptr && std::ranges::none_of(matched_, lands)) return false;
  if (state_ == State::kEnding) return disconnect(true), true;
  farewell_ = Farewell::kBroken;
  end(-ECANCELED, STM_FAILED, -EACCES);
  return true;
}

// ---- cancelling ----

// Returns the oldest operation with that context, or nullptr.
Operation* Connection::find_operation(std::uint64_t context) const {
  auto* found = operations_.oldest();
  while (found != nullptr && (found->context != context || found->cancelled))
    found = OperationList::next(*found);
  return found;
}

int Connection::cancel(std::uint64_t context) {
  auto* const operation = find_operation(context);
  const auto older = [&](std::uint64_t other) {
    return operation == nullptr || other < operation->posted;
  };
  const auto posted = std::find_if(receives_.begin(), receives_.end(),
                                   [&](const auto& r) { return r.context == context; });
  for (const auto& [number, matched] : matched_)
    if (!matched.done && matched.receive.context == context && older(number)) {
      if (over()) return 0;
      const auto error = sequencer_->cancel(number);
      return progress(domain_->now()), error;
    }
  if (posted != receives_.end() && older(posted->id)) {
    auto receive = std::move(*posted);
    receives_.erase(posted);
    outlets_.receives.push(received(receive, -ECANCELED));
    return 0;
  }
  if (operation == nullptr) return -ENOENT;
  if (over()) return 0;  // it completes as soon as the link has released it
  return cancel_operation(*operation);
}

int Connection::cancel_operation(Operation& operation) {
  operation.cancelled = true;
  if (operation.eager) return 0;  // already sent
  if (!operation.begun) {
    complete(operation, -ECANCELED);
  } else if (const auto error = sequencer_->cancel(operation.id); error != 0) {
    return error;
  }
  // The operations behind it may begin now.
  if (sequencer_) progress(domain_->now());
  return 0;
}

}  // namespace stp::managed
