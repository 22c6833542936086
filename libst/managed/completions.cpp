// SPDX-License-Identifier: BSD-3-Clause
// Handles the Sequencer's completions and turns them into events for the program.
#include "libst/client/wait.h"
#include "libst/managed/connection.h"

namespace stp::managed {

using Kind = Completion::Kind;

void Connection::on_completion(const Completion& c) {
  switch (c.kind) {
    case Kind::kReceive:
      return c.context == kHelloIn ? on_hello(c) : on_received(c);
    case Kind::kRegion:
      return on_region(c);
    case Kind::kReadRequest:
      read_requests_.push_back(c);
      return;
    case Kind::kRegionRequest:
      return on_region_request(c);
    case Kind::kEnded:
      served_.erase(c.request);
      return;
    case Kind::kRevoked:
      return on_revoked(c.region);
    case Kind::kArrived:
      return on_arrived(c);
    case Kind::kNotice:
      return eager_out_.taken(c.tag);
    case Kind::kWrite:
      return c.context == kHelloOut ? hello_sent(c.status) : on_operation(c);
    case Kind::kRead:
    case Kind::kServe:
    case Kind::kPut:
    case Kind::kGet:
    case Kind::kFetch:
      return on_operation(c);
  }
}

void Connection::on_operation(const Completion& c) {
  auto* const found = operations_.find(c.context);
  if (found == nullptr) return;
  auto& operation = *found;
  auto message = c.message;
  auto length = c.length;
  if (operation.eager) {
    eager_out_.delivered(operation.slot, operation.length);
    message = operation.message;
    if (length != 0) length -= kEagerHead;
  }
  complete(operation, status_of(operation, c), length, message);
}

// Translates the status of a completion to that of the managed API.
int Connection::status_of(const Operation& operation, const Completion& c) {
  const bool refused = c.status == -ECONNREFUSED;
  const bool ended = c.status == -ECANCELED && !operation.cancelled;
  switch (operation.kind) {
    case Operation::Kind::kSend:
      return refused ? -EMSGSIZE : c.status;
    case Operation::Kind::kPut:
    case Operation::Kind::kGet:
    case Operation::Kind::kFetch:
      return refused || ended ? -EACCES : c.status;
    case Operation::Kind::kRead:
    case Operation::Kind::kServe:
      break;
  }
  return c.status;
}

// Reports as many read requests as the queue has places for. The rest waits.
void Connection::tell_read_requests() {
  const bool open = state_ == State::kUp || state_ == State::kDraining;
  while (open && !read_requests_.empty() && outlets_.events.reserve()) {
    const auto& c = read_requests_.front();
    auto told = event(STM_READ_REQUEST, 0, outlets_.context);
    told.length = c.length;
    told.request = c.request;
    outlets_.events.push(told);
    read_requests_.pop_front();
  }
}

int Connection::refuse_read(std::uint32_t request) {
  if (state_ != State::kUp && state_ != State::kDraining) return -ENOTCONN;
  sequencer_->expire(domain_->time());
  const auto error = sequencer_->refuse(request);
  if (error == 0) send_soon();
  return error;
}

}  // namespace stp::managed
