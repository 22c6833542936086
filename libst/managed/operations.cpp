// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/operations.h"

#include <algorithm>

#include "stp/base/assert.h"

namespace stp::managed {
namespace {

constexpr unsigned kNobodyWaits = STM_QUIET | STM_LAZY;

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

// The status of a completion, as the managed API reports it.
int status_of(const Operation& operation, const Completion& c) {
  if (c.status == 0) return 0;
  const bool refused = c.status == -ECONNREFUSED;
  const bool ended = c.status == -ECANCELED && !operation.cancelled;
  switch (operation.kind) {
    case Kind::kSend:
      return refused ? -EMSGSIZE : c.status;
    case Kind::kPut:
    case Kind::kGet:
    case Kind::kFetch:
      return refused || ended ? -EACCES : c.status;
    case Kind::kRead:
    case Kind::kServe:
      break;
  }
  return c.status;
}

}  // namespace

// ---- the list ----

void OperationList::grow() {
  auto chunk = std::make_unique<Chunk>();
  auto& added = *chunk;
  if (first_chunk_ == nullptr)
    first_chunk_ = std::move(chunk);
  else
    chunks_.push_back(std::move(chunk));
  for (auto& node : added) {
    node.next_id = kMark | places_++;
    node.next = free_;
    free_ = &node;
  }
}

Operation& OperationList::add() {
  STP_ASSERT(size_ < kMost && free_->id == 0, "a free place is of no operation");
  auto& node = *free_;
  free_ = node.next;
  node.id = node.next_id;
  STP_ASSERT(find(node.id) == &node, "an operation is found by its number");
  node.next_id = (node.next_id + kPlaces) & (2 * kMark - 1);
  if (node.next_id < kMark) node.next_id += kMark;
  if (node.memory != nullptr) ++node.memory->uses;
  node.previous = last_;
  node.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &node;
  last_ = &node;
  if (waiting_ == nullptr) waiting_ = &node;
  ++size_;
  return node;
}

void OperationList::remove(Operation& operation) {
  STP_ASSERT(size_ > 0 && find(operation.id) == &operation, "an operation is removed once");
  auto& node = static_cast<Node&>(operation);
  STP_ASSERT(node.memory == nullptr || node.memory->uses > 0, "an operation's memory is in use");
  if (node.memory != nullptr) --node.memory->uses;
  if (waiting_ == &node) {
    waiting_ = node.next;
    pass_begun();
  }
  (node.previous == nullptr ? first_ : node.previous->next) = node.next;
  (node.next == nullptr ? last_ : node.next->previous) = node.previous;
  node.id = 0;
  node.next = free_;
  free_ = &node;
  --size_;
  STP_ASSERT((size_ == 0) == (first_ == nullptr) && (size_ != 0 || waiting_ == nullptr),
             "a list without operations has no first one, and none that waits");
}

void OperationList::remove_oldest(std::size_t count) {
  STP_ASSERT(count != 0 && count <= size_, "what is removed is there");
  auto* const first = first_;
  auto* last = first;
  for (auto left = count;; last = last->next) {
    STP_ASSERT(last->begun && last->id != 0, "an operation that is removed has started");
    if (last->memory != nullptr) --last->memory->uses;
    last->id = 0;
    if (--left == 0) break;
  }
  first_ = last->next;
  (first_ == nullptr ? last_ : first_->previous) = nullptr;
  last->next = free_;
  free_ = first;
  size_ -= count;
}

void OperationList::forget() {
  while (first_ != nullptr) remove(*first_);
}

// ---- beginning ----

// Runs once per operation, so it is one function.
[[gnu::flatten]] void Operations::begin_in_order(Session& session) {
  while (auto* const next = list_.waiting()) {
    if ((next->flags & STM_FENCE) != 0 && list_.oldest() != next)
      return session.sequencer.confirm_puts();
    const bool is_put = next->kind == Kind::kPut;
    const auto error = is_put ? begin_remote(session, *next) : try_begin(session, *next);
    if (error == -EAGAIN) return;
    if (is_put && error == 0) [[likely]]
      list_.begun(*next);
    else
      has_begun(*next, error);
  }
}

// Of the answers that other operations are in front of.
void Operations::begin_answers(Session& session) {
  while (!answers_.empty()) {
    auto& next = *answers_.front();
    const auto error = begin_write(session, next);
    if (error == -EAGAIN) return;
    has_begun(next, error);
  }
}

void Operations::has_begun(Operation& operation, int error) {
  list_.begun(operation);
  if (operation.kind == Kind::kServe) forget_answer(operation);
  if (error != 0) complete(operation, error);
}

// Returns -EAGAIN if the operation cannot begin yet.
int Operations::try_begin(Session& session, Operation& operation) {
  switch (operation.kind) {
    case Kind::kSend:
      return begin_send(session, operation);
    case Kind::kRead:
      return session.sequencer.read(
          operation.id,
          operation.memory->landing(session.endpoint, operation.ptr, operation.length));
    case Kind::kServe:
      return begin_write(session, operation);
    case Kind::kPut:
    case Kind::kGet:
    case Kind::kFetch:
      break;
  }
  return begin_remote(session, operation);
}

int Operations::begin_send(Session& session, Operation& operation) {
  session.eager_out.free_held(session.sequencer);
  const iovec whole{operation.ptr, operation.length};
  if (goes_by_ring(session, operation.length) &&
      session.eager_out.send(session.sequencer, session.staging, operation, {.parts = {&whole, 1}},
                             session.eager_in, may_be_quiet(operation)) == 0)
    return 0;
  if (lacks_pages(session, operation.length)) return session.wait_for_pages(), -EAGAIN;
  return begin_write(session, operation);
}

int Operations::send_at_once(Session& session, const Pieces& bytes, std::uint64_t posted) {
  session.eager_out.free_held(session.sequencer);
  const auto& operation = list_.draft();
  const auto& ring = session.eager_out;
  if (ring.is_open() && !ring.is_small() && operation.length > ring.most()) return -EMSGSIZE;
  const auto waits =
      list_.waiting() != nullptr || ((operation.flags & STM_FENCE) != 0 && !list_.empty());
  if (waits) return -EAGAIN;
  if (!goes_by_ring(session, operation.length))
    return prepare_ring(session, operation.length), -EAGAIN;
  if (!post(posted)) return -ENOBUFS;
  auto& added = *list_.waiting();
  if (session.eager_out.send(session.sequencer, session.staging, added, bytes, session.eager_in,
                             may_be_quiet(added)) == 0) {
    list_.begun(added);
    return 0;
  }
  list_.remove(added);
  reports_.release_send();
  return -EAGAIN;
}

// For a message of that length, which is tried again.
void Operations::prepare_ring(Session& session, std::uint64_t length) const {
  if (lacks_pages(session, length)) return session.wait_for_pages();
  static_cast<void>(session.eager_out.opens_for(session.sequencer, length));
}

// The ring saves a round trip and costs two copies. Among other Writes, the round trip of a long
// message costs no time.
bool Operations::goes_by_ring(const Session& session, std::uint64_t length) const {
  return session.eager_out.has_room(length) && saves_time(length);
}

bool Operations::lacks_pages(const Session& session, std::uint64_t length) const {
  return session.eager_out.lacks_pages(length) && saves_time(length);
}

bool Operations::saves_time(std::uint64_t length) const {
  constexpr std::uint64_t kLong = eager_most(2);
  return length <= kLong || !writes_.any();
}

int Operations::begin_write(Session& session, Operation& operation) {
  const bool is_message = operation.kind == Kind::kSend;
  if (is_message && session.eager_out.opens_for(session.sequencer, operation.length))
    return -EAGAIN;
  const auto waits_for_ring =
      is_message && session.eager_out.is_open() && operation.length <= session.eager_out.most();
  if (waits_for_ring ? !writes_.may_begin_message() : !writes_.may_begin()) return -EAGAIN;
  operation.fetch();
  auto& sequencer = session.sequencer;
  const auto error = operation.kind == Kind::kSend
                         ? sequencer.write(operation.id, operation.source(), operation.length,
                                           {.tag = operation.tag, .flags = wire_flags(operation)})
                         : sequencer.serve_read(operation.request, operation.id, operation.source(),
                                                operation.length);
  if (error == 0) operation.write = writes_.begin();
  return error;
}

int Operations::begin_remote(Session& session, Operation& operation) {
  auto* const region = regions_.find(session.sequencer, operation.key);
  if (region == nullptr || region->state == PeerRegion::State::kAsked) return -EAGAIN;
  if (region->state == PeerRegion::State::kClosed) return region->status;
  const auto error = access(session, operation, region->region);
  if (error != 0) return error;
  operation.remote_uses = &region->operations;
  ++region->operations;
  return 0;
}

int Operations::access(Session& session, const Operation& operation, const RemoteRegion& region) {
  const auto needed = needed_access(operation.kind);
  if ((region.access & needed) == 0) return -EACCES;
  const auto offset = operation.address - region.base;
  if (operation.address < region.base || offset > region.length ||
      operation.length > region.length - offset)
    return -ERANGE;
  auto& sequencer = session.sequencer;
  if (operation.kind == Kind::kPut) {
    operation.fetch();
    return sequencer.put(operation.id, region, offset, operation.source(), operation.length,
                         {.flags = wire_flags(operation), .quiet = may_be_quiet(operation)});
  }
  const auto landing = operation.memory->landing(session.endpoint, operation.ptr, operation.length);
  if (operation.kind == Kind::kGet) return sequencer.get(operation.id, region, offset, landing);
  return sequencer.fetch(operation.id, region, offset, operation.function,
                         operation.operands.operand, operation.operands.compare, landing);
}

// True if the completion may come late: the program waits for no event, and the queue has plenty of
// places.
bool Operations::may_be_quiet(const Operation& operation) const {
  return (operation.flags & kNobodyWaits) != 0 && reports_.sends().has_plenty();
}

// ---- completing ----

// Runs once per operation, so it is one function.
[[gnu::flatten]] void Operations::on_completion(Session& session, const Completion& c) {
  auto* const operation = list_.find(c.context);
  if (operation == nullptr) return;
  auto message = c.message;
  auto length = c.length;
  auto status = status_of(*operation, c);
  if (operation->eager) {
    session.eager_out.free_held(session.sequencer);
    session.eager_out.delivered(session.sequencer, operation->sent.slot, operation->length);
    message = operation->sent.message;
    if (length != 0) length -= kEagerHead;
    // The peer's program has received it, and left before the acknowledgement that others share.
    if (status != 0 && session.eager_out.has_taken(operation->sent.ring_end)) {
      status = 0;
      length = operation->length;
    }
  }
  complete(*operation, status, length, message);
}

// Runs for each put, so it is one function.
[[gnu::flatten]] void Operations::complete_puts(Session& session) {
  constexpr std::size_t kAtOnce = 16;
  std::array<PutDone, kAtOnce> puts;
  while (const auto count = session.sequencer.next_puts(puts))
    for (std::size_t i = 0; i < count;) {
      const auto left = std::span(puts).first(count).subspan(i);
      const auto plain = left.size() > 1 ? complete_oldest(left) : 0;
      if (plain == 0) on_put(session, puts[i]);
      i += std::max<std::size_t>(plain, 1);
    }
}

namespace {

// A put that somebody waits for has few things to end.
bool is_plain(const Operation& operation) {
  return operation.kind == Kind::kPut && (operation.flags & STM_QUIET) == 0;
}

}  // namespace

// As many of `puts` as are those of the oldest operations, and plain. Returns how many.
std::size_t Operations::complete_oldest(std::span<const PutDone> puts) {
  std::size_t count = 0;
  auto* operation = list_.oldest();
  for (const auto& put : puts) {
    if (operation == nullptr || operation->id != put.context || put.status != 0 ||
        !is_plain(*operation))
      break;
    operation = OperationList::next(*operation);
    ++count;
  }
  if (count == 0) return 0;
  for (auto left = puts.first(count); !left.empty();) {
    const auto events = reports_.complete(left.size());
    operation = list_.oldest();
    for (std::size_t i = 0; i < events.size(); ++i, operation = OperationList::next(*operation)) {
      STP_ASSERT(operation->remote_uses != nullptr && *operation->remote_uses > 0,
                 "the peer's region is in use by what completes");
      --*operation->remote_uses;
      reports_.fill_in(events[i], STM_PUT, 0, operation->context);
      events[i].length = left[i].length;
    }
    list_.remove_oldest(events.size());
    left = left.subspan(events.size());
  }
  return count;
}

// As on_completion().
void Operations::on_put(Session& session, const PutDone& put) {
  auto* const operation = list_.find(put.context);
  if (operation == nullptr) return;
  if (put.status != 0 || !is_plain(*operation)) return complete_other(session, *operation, put);
  STP_ASSERT(operation->remote_uses != nullptr && *operation->remote_uses > 0,
             "the peer's region is in use by what completes");
  --*operation->remote_uses;
  reports_.complete(STM_PUT, 0, operation->context).length = put.length;
  list_.remove(*operation);
}

[[gnu::noinline]] void Operations::complete_other(Session& session, const Operation& operation,
                                                  const PutDone& put) {
  Completion c{};
  c.kind = Completion::Kind::kPut;
  c.status = put.status;
  c.context = operation.id;
  c.length = put.length;
  on_completion(session, c);
}

void Operations::complete(Operation& operation, int status, std::uint64_t length,
                          std::uint32_t message) {
  if (operation.write != 0) writes_.complete(operation.write);
  if (operation.kind == Kind::kServe && !operation.begun) forget_answer(operation);
  STP_ASSERT(operation.remote_uses == nullptr || *operation.remote_uses > 0,
             "the peer's region is in use by what completes");
  if (operation.remote_uses != nullptr) --*operation.remote_uses;
  if (status == 0) operation.store();
  if (status != 0 && operation.memory != nullptr) operation.memory->failed = true;
  if (status == 0 && (operation.flags & STM_QUIET) != 0) {
    list_.remove(operation);
    return reports_.release_send();
  }
  auto& told = reports_.complete(event_kind(operation.kind), status, operation.context);
  told.length = length;
  told.message = program_message(message);
  list_.remove(operation);
}

void Operations::flush(int status) {
  while (!list_.empty()) complete(*list_.oldest(), status);
}

// ---- looking for operations ----

std::uint32_t Operations::quiet() const {
  std::uint32_t count = 0;
  const auto* operation = list_.oldest();
  for (; operation != nullptr; operation = OperationList::next(*operation))
    count += (operation->flags & STM_QUIET) != 0;
  return count;
}

bool Operations::uses(const Memory& memory) const {
  const auto* operation = list_.oldest();
  while (operation != nullptr && operation->memory != &memory)
    operation = OperationList::next(*operation);
  return operation != nullptr;
}

unsigned Operations::quiet_uses(const Memory& memory) const {
  unsigned uses = 0;
  const auto* operation = list_.oldest();
  for (; operation != nullptr; operation = OperationList::next(*operation))
    uses += operation->memory == &memory && (operation->flags & kNobodyWaits) != 0;
  return uses;
}

Operation* Operations::find(std::uint64_t context) const {
  auto* found = list_.oldest();
  while (found != nullptr && (found->context != context || found->cancelled))
    found = OperationList::next(*found);
  return found;
}

int Operations::cancel(Session* session, Operation& operation) {
  operation.cancelled = true;
  if (operation.eager) return 0;  // already sent
  if (operation.begun) return session->sequencer.cancel(operation.id);
  complete(operation, -ECANCELED);
  return 0;
}

}  // namespace stp::managed
