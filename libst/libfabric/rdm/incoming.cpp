// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/incoming.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/libfabric/provider.h"
#include "libst/libfabric/rdm/endpoint.h"
#include "libst/libfabric/receives.h"

namespace stp::fi::rdm {
namespace {

// Buffers of a connection. While all hold messages that wait for receives, the peer waits, too.
constexpr std::size_t kBuffers = 16;
constexpr std::size_t kMostReads = 16;

// One byte is read for an empty message.
std::size_t read_length(const Op& op) {
  return std::max<std::size_t>(op.length, 1);
}

}  // namespace

Incoming::~Incoming() {
  if (memory_ != nullptr) stm_memory_release(memory_);
}

int Incoming::accept() {
  auto& link = endpoint_.link();
  bytes_ = allocate(kBuffers * kBuffer);
  if (!bytes_) return -ENOMEM;
  auto error = stm_memory_register(link.domain(), bytes_.get(), kBuffers * kBuffer, STM_LOCAL_WRITE,
                                   &memory_);
  if (error != 0) return error;
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.context = reinterpret_cast<std::uintptr_t>(static_cast<Owner*>(this));
  attr.events = link.queue();
  const auto says = endpoint_.counts_accesses() ? kListens : std::string_view();
  error = stm_accept(connection_, &attr, says.data(), says.size());
  if (error != 0) return error;
  buffers_.resize(kBuffers);
  for (std::size_t i = 0; i < kBuffers; ++i) {
    buffers_[i] = {this, bytes_.get() + i * kBuffer};
    post(buffers_[i]);
  }
  return 0;
}

void Incoming::close() {
  if (connection_ != nullptr) stm_connection_close(std::exchange(connection_, nullptr));
}

void Incoming::post(RxBuffer& buffer) {
  if (ended_ || connection_ == nullptr) return;
  stm_receive(connection_, reinterpret_cast<std::uintptr_t>(&buffer), memory_, buffer.data,
              kBuffer);
}

void Incoming::break_off(const char* why) {
  inform(FI_LOG_EP_DATA, std::string("a peer is broken off: ") + why);
  broken_ = true;
  if (connection_ != nullptr) stm_disconnect(connection_, STM_BROKEN);
}

void Incoming::connection_event(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) return;
  ended_ = true;
  if (event.kind == STM_FAILED) endpoint_.link().suspect();
  give_up(event.status != 0 ? event.status : -ENOTCONN);
  endpoint_.has_ended(*this);
}

void Incoming::give_up(int status) {
  endpoint_.matching().forget(*this);
  for (auto* const op : std::exchange(waiting_, {})) {
    op->status = status;
    endpoint_.received(*op);
  }
}

void Incoming::serve(const stm_event_t& event) {
  stm_refuse_read(connection_, event.request);
  break_off("it reads where nothing is announced to it");
}

void Incoming::arrived(RxBuffer& buffer, const stm_event_t& event) {
  if (event.status == -EMSGSIZE) break_off("a message is longer than a buffer");
  if (event.status != 0 || ended_ || broken_) return;
  const auto size = static_cast<std::size_t>(event.length);
  const auto kind = static_cast<Kind>(event.tag);
  Message message{.from = this, .source = source_, .kind = kind, .head = {}, .copy = {}};
  if (size >= kHead) message.head = load(buffer.data);
  if (size < kHead || !is_legal(kind, message.head, size)) {
    break_off("a message is none of the protocol");
    return;
  }
  if (kind == Kind::kAccessed && !endpoint_.counts_accesses())
    return break_off("it tells of accesses unasked");
  if (kind == Kind::kWritten) endpoint_.written(message);
  if (kind == Kind::kWritten || kind == Kind::kAccessed) {
    endpoint_.accessed(message.head);
    return post(buffer);
  }
  message.buffer = &buffer;
  if (auto receive = endpoint_.receive_for(message); receive)
    endpoint_.deliver(std::move(message), std::move(*receive));
  else
    keep(std::move(message));
}

// The message waits for a receive: in a copy, as long as the connection may have more of them.
void Incoming::keep(Message&& message) {
  const auto length = message.kind == Kind::kEager ? message.head.length : 0;
  if (kept_ < endpoint_.most_kept()) {
    if (length != 0) {
      message.copy = std::make_unique_for_overwrite<std::byte[]>(length);
      std::memcpy(message.copy.get(), message.bytes(), length);
    }
    kept_ += length + kCostOfMessage;
    post(*std::exchange(message.buffer, nullptr));
  }
  endpoint_.matching().add(std::move(message));
}

void Incoming::done_with(Message& message) {
  if (message.buffer != nullptr) {
    post(*std::exchange(message.buffer, nullptr));
    return;
  }
  kept_ -= (message.kind == Kind::kEager ? message.head.length : 0) + kCostOfMessage;
}

// ---- announced messages ----

void Incoming::pull(const Message& message, Receive&& receive) {
  auto& op = endpoint_.begin_receive(message, std::move(receive));
  op.owner = this;
  op.id = message.head.id;
  waiting_.push_back(&op);
  read_next();
}

// Of those that wait, each that has another length than all that are under way.
void Incoming::read_next() {
  for (auto next = waiting_.begin();
       next != waiting_.end() && reading_.size() < kMostReads && !broken_;) {
    auto& op = **next;
    const auto is_same = [&](const Op* other) { return read_length(*other) == read_length(op); };
    if (std::ranges::any_of(reading_, is_same)) {
      ++next;
      continue;
    }
    next = waiting_.erase(next);
    reading_.push_back(&op);
    const auto error = read(op);
    if (error == 0) continue;
    // The sender would wait for the read for ever.
    break_off("a message cannot be read");
    part_done(op, error);
  }
}

// A status: not all of its parts have begun.
int Incoming::read(Op& op) {
  auto& link = endpoint_.link();
  std::byte nothing{};
  const auto landing = op.length != 0 ? op.landing : one_segment(&nothing, 1, nullptr);
  const auto length = read_length(op);
  op.parts = 1;
  if (const auto error = link.span_of(landing, false, op.span); error != 0) return error;
  if (op.length == 0 || op.span.data == landing.iov[0].iov_base) op.landing = {};
  if (const auto error = link.slots().take(op.note); error != 0) return error;
  store({.length = length, .id = op.id}, op.note.data);
  const auto context = reinterpret_cast<std::uintptr_t>(&op);
  const auto error = stm_send(connection_, context, 0, static_cast<std::uint32_t>(Kind::kPull),
                              op.note.memory, op.note.data, kHead);
  if (error != 0) return error;
  op.parts = 2;
  return stm_read(connection_, context, 0, op.span.memory, op.span.data, length);
}

void Incoming::part_done(Op& op, int status) {
  if (status != 0 && op.status == 0) op.status = status;
  if (--op.parts != 0) return;
  std::erase(reading_, &op);
  endpoint_.received(op);
  if (!ended_) read_next();
}

}  // namespace stp::fi::rdm
