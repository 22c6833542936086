// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/endpoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi::rdm {
namespace {

// So much memory of the provider holds what a peer has asked for and not taken. Then its next
// question waits.
constexpr std::size_t kMostAnswering = std::size_t{128} << 10;

// Of the messages of a peer that wait to be read, so many are looked at each time.
constexpr unsigned kMostLooks = 64;

// One byte is read for an empty message.
std::size_t read_length(const Op& op) {
  return std::max<std::size_t>(op.length, 1);
}

}  // namespace

Incoming::Incoming(Endpoint& endpoint, stm_connection_t connection, std::shared_ptr<OfHost> host,
                   const Address& source, const Knows& knows)
    : Connection(endpoint, connection),
      endpoint_(endpoint),
      host_(std::move(host)),
      source_(source),
      may_lend_(knows.lanes),
      several_(knows.several && endpoint.most_kept() >= kLeastForSeveral) {
  ++host_->connections;
}

Incoming::~Incoming() {
  --host_->connections;
  uncount_kept(kept_);
  endpoint_.link().stop_awaiting(*this);
  endpoint_.link().stop_watching(*this);
  endpoint_.link().stop_telling(*this);
  for (; buffers_.size() > Buffers::kFirst; buffers_.pop_back())
    endpoint_.buffers().give_back_further(*host_, *buffers_.back());
  for (auto* const buffer : buffers_) endpoint_.buffers().give_back(*buffer);
}

int Incoming::accept() {
  while (buffers_.size() < Buffers::kFirst)
    if (const auto error = add_buffer(); error != 0) return error;
  const auto attr = attributes();
  auto says = std::string(several_ ? kTakesSeveral : std::string_view());
  if (endpoint_.counts_accesses()) says.append(kListens);
  const auto error = stm_accept(connection_, &attr, says.data(), says.size());
  if (error != 0) return error;
  for (auto* const buffer : buffers_) post(*buffer);
  return 0;
}

[[gnu::noinline]] int Incoming::add_buffer() {
  RxBuffer* buffer = nullptr;
  auto& all = endpoint_.buffers();
  const auto error =
      buffers_.size() < Buffers::kFirst ? all.take(buffer) : all.take_further(*host_, buffer);
  if (error != 0) return error;
  buffer->owner = this;
  buffers_.push_back(buffer);
  ++in_use_;
  return 0;
}

void Incoming::post(RxBuffer& buffer) {
  --in_use_;
  lend(buffer);
}

void Incoming::connection_event(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) {
    up_ = true;
    return;
  }
  leaves_ = true;
  take_held();  // what they waited for may have come meanwhile
  if (waits_for_program())
    end_ = event;
  else
    end(event);
}

// The peer knows that its message is here, so it is not lost because the program is slow.
bool Incoming::waits_for_program() const {
  if (held_.empty() || ended_ || broken_) return false;
  const auto& first = held_.front();
  Message message{.source = source_, .head = load(first.buffer->data + first.at), .copy = {}};
  return !endpoint_.may_tell(first.kind, message);
}

void Incoming::end(const stm_event_t& event) {
  ended_ = true;
  const auto status = reason_of_end(event, -ENOTCONN);
  give_up(status);
  endpoint_.has_ended(*this);
  if (event.kind == STM_FAILED && up_) endpoint_.fell_silent(source_, status);
}

void Incoming::give_up(int status) {
  if (const auto missing = waiting_.size() + reading_.size() + held_.size() + (assembly_ ? 1 : 0);
      missing != 0)
    inform(FI_LOG_EP_DATA, "a peer ends that has not sent all that it has begun or announced: " +
                               std::to_string(missing) + " messages are missing");
  endpoint_.matching().forget(*this, host_);
  uncount_kept(kept_);  // what stays is left
  endpoint_.link().stop_watching(*this);
  held_.clear();
  if (auto cut = std::exchange(assembly_, std::nullopt); cut && cut->receive)
    endpoint_.lose(cut->message, *cut->receive, status);
  for (const auto& pending : std::exchange(waiting_, {})) {
    pending.op->status = status;
    endpoint_.received(*pending.op);
  }
}

void Incoming::serve(const stm_event_t& event) {
  if (asked_ && !ended_ && !broken_) return serve_asked(event.request, event.length);
  stm_refuse_read(connection_, event.request);
  break_off("it reads where nothing is announced to it");
}

// Runs once per message, so it is one function with take_at_once().
[[gnu::flatten]] void Incoming::arrived(RxBuffer& buffer, const stm_event_t& event) {
  if (!take_at_once(buffer, event)) arrived_otherwise(buffer, event);
}

[[gnu::noinline]] void Incoming::arrived_otherwise(RxBuffer& buffer, const stm_event_t& event) {
  in_use_ += event.status == 0;
  if (!has_brought(event)) return;
  if (buffers_.size() < Buffers::kMost) sends_more();
  Arrived message{&buffer, static_cast<Kind>(event.tag), static_cast<std::size_t>(event.length)};
  if (held_.empty() && take(message)) return;
  hold(message);
}

// Who brings many messages gets more buffers, while there are some; and so does who has none left,
// because they hold messages that wait for receives. Without one, the peer waits, too.
[[gnu::noinline]] void Incoming::sends_more() {
  ++brought_;
  if (brought_ % Buffers::kEach != 0 && in_use_ != buffers_.size()) return;
  if (add_buffer() == 0) post(*buffers_.back());
}

[[gnu::noinline]] void Incoming::hold(const Arrived& message) {
  if (held_.empty()) endpoint_.link().await(*this);
  held_.push_back(message);
  endpoint_.link().watch(*this);
}

bool Incoming::take_at_once(RxBuffer& buffer, const stm_event_t& event) {
  const auto size = static_cast<std::size_t>(event.length);
  const auto is_short = static_cast<Kind>(event.tag) == Kind::kEager && event.status == 0 &&
                        size >= kHead && size <= kHead + kRdmInjectMost;
  if (!is_short || ended_ || broken_ || assembly_ || !held_.empty()) return false;
  const auto head = load(buffer.data);
  if (!is_legal(Kind::kEager, head, size)) return false;
  const auto is_taken = endpoint_.matching().serve(head, source_, [&](const Receive& receive) {
    endpoint_.land(head, buffer.data + kHead, receive, sender());
  });
  if (!is_taken) return false;
  lend(buffer);
  if (buffers_.size() < Buffers::kMost) sends_more();
  return true;
}

fi_addr_t Incoming::sender() {
  if (sender_as_of_ != endpoint_.av().version()) [[unlikely]]
    find_sender();
  return sender_;
}

[[gnu::noinline]] void Incoming::find_sender() {
  sender_as_of_ = endpoint_.av().version();
  sender_ = endpoint_.av().find(source_);
}

// The peer has sent something that was awaited.
void Incoming::came() {
  endpoint_.link().stop_watching(*this);
  if (!held_.empty() || !reading_.empty() || assembly_) endpoint_.link().watch(*this);
}

void Incoming::look_again() {
  if (!ended_ && !waiting_.empty()) read_next();
  if (waits_for_host_) keep_more();
  if (take_held() || (end_ && !waits_for_program())) {
    if (end_) end(*std::exchange(end_, std::nullopt));
    return;
  }
  endpoint_.link().await(*this);
}

// Messages keep their order, so all wait for the first. False: that has to wait further.
bool Incoming::take_held() {
  while (!held_.empty() && !ended_ && !broken_) {
    if (!take(held_.front())) return false;
    held_.pop_front();
    came();
  }
  return true;
}

[[gnu::noinline]] bool Incoming::take(Arrived& arrived) {
  const auto kind = arrived.kind;
  const auto size = arrived.size;
  auto& buffer = *arrived.buffer;
  Message message{.from = this, .source = source_, .head = {}, .copy = {}};
  if (size >= kHead) message.head = load(buffer.data);
  if (size < kHead || !is_legal(kind, message.head, size)) {
    break_off("a message is none of the protocol");
    return true;
  }
  if (assembly_.has_value() != (kind == Kind::kMore)) {
    break_off("the parts of a message do not follow each other");
    return true;
  }
  if (kind == Kind::kSeveral) return take_several(arrived);
  if (kind == Kind::kAsk && answering_ >= kMostAnswering) return false;
  if (!endpoint_.may_tell(kind, message)) return false;
  if (kind == Kind::kLaned) return take_laned(std::move(message), buffer, size);
  take(kind, std::move(message), buffer, size);
  return true;
}

void Incoming::take(Kind kind, Message&& message, RxBuffer& buffer, std::size_t size) {
  if (may_lend_ && size > kHead + kRdmInjectMost) lend_lane();
  if (kind == Kind::kMore) return take_more(message.head, buffer, size - kHead);
  if (kind == Kind::kAccessed && !endpoint_.counts_accesses())
    return break_off("it tells of accesses unasked");
  if (kind == Kind::kWritten) endpoint_.written(message);
  if (kind == Kind::kWritten || kind == Kind::kAccessed) {
    endpoint_.accessed(message.head);
    return post(buffer);
  }
  if (kind == Kind::kAsk) {
    access(message.head, buffer.data + kHead);
    return post(buffer);
  }
  if (kind == Kind::kFirst) return take_first(std::move(message), buffer);
  message.buffer = &buffer;
  message.lies = buffer.data + kHead;
  if (kind == Kind::kAnnounced) {
    message.announced = true;
    const auto tail = tail_length(message.head.length);
    std::memcpy(message.tail.data() + (kTail - tail), buffer.data + kHead, tail);
  }
  match(std::move(message));
}

void Incoming::match(Message&& message) {
  if (auto receive = endpoint_.receive_for(message); receive)
    endpoint_.deliver(std::move(message), std::move(*receive));
  else
    keep(std::move(message));
}

// ---- several as one ----

bool Incoming::take_several(Arrived& arrived) {
  if (!several_) {
    break_off("several messages come as one unasked");
    return true;
  }
  while (arrived.at < arrived.size) {
    const auto* const bytes = arrived.buffer->data + arrived.at;
    const auto left = arrived.size - arrived.at;
    Head head;
    if (left >= kHead) head = load(bytes);
    if (left < kHead || !is_legal(Kind::kSeveral, head, left)) {
      break_off("a message is none of the protocol");
      return true;
    }
    if (!take_one(head, bytes + kHead)) return false;
    arrived.at += kHead + static_cast<std::size_t>(head.length);
  }
  post(*arrived.buffer);
  return true;
}

// If no receive awaits it, it waits in a copy: the buffer holds others.
bool Incoming::take_one(const Head& head, const std::byte* bytes) {
  const auto land = [&](const Receive& receive) { endpoint_.land(head, bytes, receive, sender()); };
  if (endpoint_.matching().serve(head, source_, land)) return true;
  Message message{.from = this, .source = source_, .head = head, .copy = {}, .lies = bytes};
  if (!endpoint_.may_tell(Kind::kEager, message)) return false;
  auto receive = endpoint_.receive_for(message);
  if (!receive && !may_keep() && !leaves_) return false;
  copy_out(message);
  count_kept(cost_of(message));
  if (receive)
    endpoint_.deliver(std::move(message), std::move(*receive));
  else
    endpoint_.matching().add(std::move(message));
  return true;
}

// ---- messages in parts ----

// If no receive awaits it, it lies in a copy, and none gets it before it is whole.
void Incoming::take_first(Message&& message, RxBuffer& buffer) {
  assembly_.emplace();
  endpoint_.link().watch(*this);
  assembly_->receive = endpoint_.receive_for(message);
  if (!assembly_->receive)
    message.copy = std::make_unique_for_overwrite<std::byte[]>(message.head.length);
  assembly_->message = std::move(message);
  take_part(buffer, kEagerMost);
  post(buffer);
}

void Incoming::take_more(const Head& head, RxBuffer& buffer, std::size_t length) {
  const auto whole = assembly_->message.head.length;
  if (head.length != assembly_->arrived || length != part_length(whole, assembly_->arrived))
    return break_off("a part of a message is not the next one");
  take_part(buffer, length);
  if (assembly_->arrived < whole) return post(buffer);
  auto done = std::move(*assembly_);
  assembly_.reset();
  came();
  done.message.buffer = &buffer;
  if (!done.receive) return match(std::move(done.message));
  done.message.landed = true;
  endpoint_.deliver(std::move(done.message), std::move(*done.receive));
}

void Incoming::take_part(const RxBuffer& buffer, std::size_t length) {
  auto& [message, receive, arrived] = *assembly_;
  if (receive)
    scatter(buffer.data + kHead, without(receive->segments, arrived), length);
  else
    std::memcpy(message.copy.get() + arrived, buffer.data + kHead, length);
  arrived += length;
}

// ---- messages in a lane ----

// From the first message on that would not be injected.
void Incoming::lend_lane() {
  may_lend_ = false;
  lane_.emplace(endpoint_.lanes(), *host_);
  if (lane_->open(connection_) == 0)
    tell_peer(Kind::kLane, lane_->told());
  else
    lane_.reset();
}

bool Incoming::take_laned(Message&& message, RxBuffer& buffer, std::size_t size) {
  const auto length = message.head.length;
  const auto put = length - (size - kHead - kLaneTail);
  const auto place = lane_ ? lane_->place(length) : std::nullopt;
  if (!place || lane_->page_of(*place) != message.head.id) {
    break_off("a message is not at its place in the lane");
    return true;
  }
  if (!lane_->has(*place, put)) return false;
  message.place = *place;
  message.laned = true;
  message.lies = lane_->take(*place, length, put, buffer.data + kHead);
  post(buffer);
  match(std::move(message));
  return true;
}

void Incoming::lane_done(std::uint64_t place) {
  if (lane_->done(place) && !std::exchange(tells_, true)) endpoint_.link().tell_later(*this);
}

void Incoming::tell() {
  tells_ = false;
  if (!ended_ && !broken_) tell_peer(Kind::kFreed, {.length = lane_->tell()});
}

// A peer that does not get the word uses the lane no more.
void Incoming::tell_peer(Kind kind, const Head& head) {
  auto& link = endpoint_.link();
  auto& op = link.take_op();
  op.owner = this;
  op.action = Action::kWord;
  if (kind == Kind::kAnswer) op.length = kCostOfMessage;
  auto error = link.notes().take(op.note);
  if (error == 0) {
    store(head, op.note.data);
    error = send_part(op, kind, op.note, kHead, STM_LAZY);
  }
  if (error == 0) {
    answering_ += op.length;
    return;
  }
  link.free_op(op);
  if (kind == Kind::kAnswer && is_there()) break_off("its question cannot be answered");
}

// The message waits for a receive: in a copy, as long as the connection may have more of them. Then
// its last buffer stays in use.
void Incoming::keep(Message&& message) {
  if (may_keep()) {
    auto* const buffer = message.buffer;
    const auto laned = message.laned;
    copy_out(message);
    count_kept(cost_of(message));
    if (buffer != nullptr) post(*buffer);
    if (laned) lane_done(message.place);
  }
  endpoint_.matching().add(std::move(message));
  wait_for_host();
}

void Incoming::done_with(Message& message) {
  if (std::exchange(message.laned, false)) return lane_done(message.place);
  if (message.buffer != nullptr) {
    post(*std::exchange(message.buffer, nullptr));
    return;
  }
  const auto was_full = !may_keep();
  uncount_kept(cost_of(message));
  if (was_full) keep_more();
}

bool Incoming::may_keep() const {
  return kept_ < endpoint_.most_kept() && endpoint_.may_keep(*host_);
}

// If messages stay in buffers only because of what others of its host keep. Those do not tell when
// theirs have been received.
void Incoming::wait_for_host() {
  waits_for_host_ = !ended_ && in_use_ > held_.size() && kept_ < endpoint_.most_kept() &&
                    !endpoint_.may_keep(*host_);
  if (waits_for_host_) endpoint_.link().await(*this);
}

// Messages that stayed in buffers get copies, as far as there is room. Without a free buffer
// nothing more of the peer arrives. What is held is not among them.
void Incoming::keep_more() {
  while (may_keep() && in_use_ > held_.size()) {
    auto* const message = endpoint_.matching().take_from_buffer(*this);
    if (message == nullptr) break;
    auto& buffer = *message->buffer;
    copy_out(*message);
    count_kept(cost_of(*message));
    post(buffer);
  }
  wait_for_host();
}

// ---- announced messages ----

void Incoming::pull(const Message& message, Receive&& receive) {
  auto& op = endpoint_.begin_receive(message, std::move(receive));
  op.owner = this;
  op.id = message.head.id;
  // Of a message that is cut, its last bytes are not wanted. One byte at least is read.
  const auto cut = op.length != message.head.length;
  const auto spare = cut || op.length == 0 ? 0 : std::min(kTail, op.length - 1);
  waiting_.push_back({&op, spare, message.tail});
  read_next();
}

std::optional<std::size_t> Incoming::free_length(const Pending& pending) const {
  const auto longest = read_length(*pending.op);
  for (auto length = longest; length + pending.spare >= longest; --length)
    if (std::ranges::find(reading_, length, &Reading::length) == reading_.end()) return length;
  return std::nullopt;
}

// Of the first that wait, each that can have a length of its own among those that are under way,
// and memory. A peer may have announced ten thousands that can only be read one after the other.
void Incoming::read_next() {
  auto& link = endpoint_.link();
  auto lacks_memory = !link.may_have_memory(lack_), waits_for_memory = false;
  auto next = waiting_.begin();
  for (auto looks = kMostLooks;
       looks != 0 && next != waiting_.end() && reading_.size() < kMostReads && !broken_; --looks) {
    const auto length = free_length(*next);
    const auto lacks = lacks_memory && !is_registered(next->op->landing);
    if (!length || lacks) {
      waits_for_memory = waits_for_memory || lacks;
      ++next;
      continue;
    }
    auto error = endpoint_.find_place(*next->op);
    if (link.comes_back(error)) {
      lacks_memory = waits_for_memory = true;
      link.await(*this);
      lack_ = link.lack();
      ++next;
      continue;
    }
    const auto pending = *next;
    next = waiting_.erase(next);
    reading_.push_back({pending.op, *length});
    link.watch(*this);
    pending.op->parts = 1;
    if (error == 0) error = read(*pending.op, pending, *length);
    if (error == 0) continue;
    // The sender would wait for the read for ever. One that has gone may have left other messages.
    if (is_there()) break_off("a message cannot be read");
    read_done(*pending.op, error);
  }
  if (waits_for_memory) link.await(*this);
}

// A status: not all of its parts have begun.
int Incoming::read(Op& op, const Pending& pending, std::size_t length) {
  auto& link = endpoint_.link();
  if (length < op.length) {
    const auto left = op.length - length;
    std::memcpy(op.span.data + length, pending.tail.data() + (kTail - left), left);
  }
  if (const auto error = link.notes().take(op.note); error != 0) return error;
  store({.length = length, .id = op.id}, op.note.data);
  if (const auto error = send_part(op, Kind::kPull, op.note, kHead); error != 0) return error;
  op.parts = 2;
  return read_part(op, length);
}

void Incoming::part_done(Op& op, int status) {
  if (op.action == Action::kWord) {
    answering_ -= op.length;
    return endpoint_.link().free_op(op);
  }
  if (read_done(op, status) && !ended_) read_next();
}

// A part of a read is done. True: it was the last one.
bool Incoming::read_done(Op& op, int status) {
  if (!op.end_part(status)) return false;
  std::erase_if(reading_, [&](const Reading& each) { return each.op == &op; });
  came();
  endpoint_.received(op);
  return true;
}

// ---- accesses that this program makes for the peer ----

// To memory that no link can write: when it is asked.

namespace {

// The numbers behind the key.
struct Numbers {
  std::uint64_t operand, compare;
};

// Makes an atomic step. Returns what stood there.
std::uint64_t step_at(std::byte* place, Access what, const Numbers& numbers) {
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(place));
  if (what == Access::kAdd) return word.fetch_add(numbers.operand);
  auto expected = numbers.compare;
  word.compare_exchange_strong(expected, numbers.operand);
  return expected;
}

// What a peer needs for it.
std::uint64_t rights_for(Access what) {
  if (what == Access::kWrite) return FI_REMOTE_WRITE;
  return what == Access::kRead ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

}  // namespace

void Incoming::access(const Head& head, const std::byte* more) {
  if (asked_) return break_off("it asks while it may read");
  const auto key = load64(more);
  const auto what = static_cast<Access>(head.flags);
  const auto* const memory = endpoint_.domain().served(key);
  auto* const place =
      memory != nullptr ? memory->place(head.tag, head.length, rights_for(what)) : nullptr;
  Head answer{.id = head.id};
  more += sizeof key;
  if (place == nullptr)
    answer.flags = 1;
  else if (what == Access::kRead)
    asked_ = {key, head.tag, head.length};
  else if (what != Access::kWrite)
    answer.data = step_at(place, what, {load64(more), load64(more + sizeof key)});
  else if (head.length != 0)
    std::memcpy(place, more, head.length);
  tell_peer(Kind::kAnswer, answer);
}

void Incoming::serve_asked(std::uint32_t request, std::uint64_t length) {
  const auto what = *std::exchange(asked_, std::nullopt);
  const auto* const memory = endpoint_.domain().served(what.key);  // it may be closed meanwhile
  const auto* const place =
      memory != nullptr ? memory->place(what.address, what.length, FI_REMOTE_READ) : nullptr;
  if (length != what.length || place == nullptr) {
    stm_refuse_read(connection_, request);
    if (place != nullptr) break_off("it reads another length than it has asked for");
    return;
  }
  auto& link = endpoint_.link();
  auto& op = link.take_op();
  op.owner = this;
  op.action = Action::kWord;
  op.length = kCostOfMessage + length;
  auto error = link.lane_slots(length).take(op.note);
  if (error == 0) {
    std::memcpy(op.note.data, place, length);
    error = stm_serve_read(connection_, request, reinterpret_cast<std::uintptr_t>(&op), 0,
                           op.note.memory, op.note.data, length);
  }
  if (error == 0) {
    answering_ += op.length;
    return;
  }
  link.free_op(op);
  break_off("what it has asked for cannot be read");
}

}  // namespace stp::fi::rdm
