// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/endpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi::rdm {
namespace {

// So much memory of the provider holds messages of an endpoint that go in parts. Beyond that, they
// are announced, and wait in the memory of the program.
constexpr std::size_t kMostPartSlots = 256;
// The same of those that are put into lanes.
constexpr std::size_t kMostLaned = 128;
// The header of such a message is at the end of its slot, or behind what is put, with the rest.
constexpr std::size_t kLaneRoom = 64;
static_assert(kHead + kLaneTail <= kLaneRoom);
// A peer has fewer reads under way at a time.
constexpr std::size_t kMostReadsOfPeer = 64;
constexpr auto kCopiedIsLost = "a message that was copied has not arrived";
// A message with one of these is complete later than when it has been copied.
constexpr std::uint64_t kLater = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE;

std::byte* laned_header(const Span& slot, std::size_t put, std::size_t rest) {
  return slot.data + (rest != 0 ? put : slot.slots->size() - kLaneRoom);
}

Head header_of(const Outbound& message, std::size_t length) {
  Head head{.tag = message.tagged ? message.tag : 0, .length = length};
  if (message.tagged) head.flags |= kTagged;
  if ((message.flags & FI_REMOTE_CQ_DATA) != 0) {
    head.flags |= kWithData;
    head.data = message.data;
  }
  return head;
}

}  // namespace

Outgoing::Outgoing(Endpoint& endpoint, const Address& peer)
    : SendingConnection(endpoint), endpoint_(endpoint), peer_(peer) {}

Outgoing::~Outgoing() {
  endpoint_.link().stop_awaiting(*this);
  endpoint_.link().stop_leaving(*this);
  endpoint_.link().dialers().forget(*this);
  question_.release();
  for (auto* const word : words_) endpoint_.words().give_back(*word);
}

int Outgoing::dial() {
  while (words_.size() < kWords) {
    RxBuffer* word = nullptr;
    if (const auto error = endpoint_.words().take(word); error != 0) return error;
    word->owner = this;
    words_.push_back(word);
  }
  const auto knows = std::string(kKnowsLanes).append(kSendsSeveral);
  return Connection::dial(peer_,
                          pack_request(endpoint_.name(), knows.data(), knows.size(), kMagic));
}

// ---- operations ----

int Outgoing::post(Op& op) {
  op.owner = this;
  if (op.injected && !op.in_steps) op.stm_flags |= STM_LAZY;
  if (gathered_ != nullptr)
    if (const auto error = send_gathered(); error != 0) return error;
  if (up_ || ended_) return begin(op);
  waiting_.push_back(&op);
  flush();
  return 0;
}

bool Outgoing::send_at_once(const Head& head, const Outbound& message) {
  if (!is_up() || gathered_ != nullptr) return false;
  std::array<std::byte, kHead> bytes;
  store(head, bytes.data());
  return SendingConnection::send_at_once(at_once_, STM_QUIET,
                                         static_cast<std::uint32_t>(Kind::kEager), bytes.data(),
                                         kHead, message.iov, message.count);
}

int Outgoing::begin(Op& op) {
  switch (op.action) {
    case Action::kMessage:
    case Action::kAnnounce: {
      if (op.action == Action::kAnnounce) {
        while (announced_.contains(++last_id_))
          ;
        op.id = last_id_;
        auto head = load(op.note.data);
        head.id = op.id;
        store(head, op.note.data);
        if (const auto tail = tail_length(op.length); tail != 0)
          std::memcpy(op.note.data + kHead, op.span.data + op.length - tail, tail);
      }
      const auto announces = op.action == Action::kAnnounce;
      const auto kind = announces ? Kind::kAnnounced : Kind::kEager;
      const auto error =
          send_part(op, kind, op.note, kHead + (announces ? tail_length(op.length) : op.length),
                    op.stm_flags);
      if (error == 0 && !announces) ++late_;
      if (error != 0 || !announces) return error;
      op.parts = 2;
      announced_.emplace(op.id, &op);
      return 0;
    }
    case Action::kSeveral:
      return begin_several(op);
    case Action::kParts:
      return begin_parts(op);
    case Action::kLaned:
      return begin_laned(op);
    case Action::kAsk:
      return begin_ask(op);
    case Action::kWrite:
    case Action::kRead:
    case Action::kAtomic:
    case Action::kWord:
      break;
  }
  return begin_access(op);
}

// All parts at once: nothing else comes between them.
int Outgoing::begin_parts(Op& op) {
  if (const auto error = send_part(op, Kind::kFirst, op.note, kBuffer, op.stm_flags); error != 0)
    return error;
  auto offset = kEagerMost;
  for (const auto& span : op.more) {
    const auto length = part_length(op.length, offset);
    op.status = send_part(op, Kind::kMore, span, kHead + length);
    if (op.status != 0) {
      break_off("a part of a message cannot be sent");  // so the others complete
      return 0;
    }
    ++op.parts;
    offset += length;
  }
  return 0;
}

// The header does not wait for the put: its receiver looks whether the mark is there.
int Outgoing::begin_laned(Op& op) {
  const auto context = reinterpret_cast<std::uintptr_t>(&op);
  const auto place = lane_.place(op.length);
  const auto rest = lane_.rest(op.length);
  const auto put = op.length - rest;
  auto* const bytes = op.note.data;
  auto* const header = laned_header(op.note, put, rest);
  auto head = load(header);
  head.id = lane_.page_of(place);
  store(head, header);
  auto* const last = bytes + put - kLaneTail;
  std::memcpy(header + kHead, last, kLaneTail);
  const auto mark = htobe64(lane_.mark(place));
  std::memcpy(last, &mark, kLaneTail);
  std::array<stm_operation_t, 2> both{};
  both[0].kind = STM_PUT;
  both[0].ptr = bytes;
  both[0].length = put;
  both[0].key = lane_.key();
  both[0].address = std::uint64_t{head.id} * kLanePage;
  both[0].flags = op.stm_flags;
  both[1].kind = STM_SEND;
  both[1].ptr = header;
  both[1].length = kHead + kLaneTail + rest;
  both[1].tag = static_cast<std::uint32_t>(Kind::kLaned);
  both[1].flags = op.stm_flags & ~static_cast<unsigned>(STM_FENCE);
  for (auto& each : both) {
    each.context = context;
    each.memory = op.note.memory;
  }
  const auto posted = stm_post_list(connection_, both.data(), both.size());
  if (posted < 1) return posted < 0 ? posted : -EIO;
  lane_.use(place, op.length);
  op.parts = static_cast<unsigned>(posted);
  if (posted == 2) return 0;
  op.status = -EAGAIN;
  break_off("the header of a message cannot be sent");
  return 0;
}

void Outgoing::flush() {
  while (!waiting_.empty() && may_begin(*waiting_.front())) {
    auto& op = *waiting_.front();
    waiting_.pop_front();
    const auto error = begin(op);
    if (error != 0 && !up_) return fails_before_up(op);
    if (error != 0) part_done(op, error);
  }
}

// The event of the connection's end follows: what is lost with it is told together, and with its
// reason.
void Outgoing::fails_before_up(Op& op) {
  dialed_ = false;  // nothing else begins
  waiting_.push_front(&op);
}

void Outgoing::part_done(Op& op, int status) {
  if (&op == &at_once_) {
    inform(FI_LOG_EP_DATA, kCopiedIsLost);
    return endpoint_.never_arrived(peer_, status);
  }
  if (status != 0 && !up_ && !ended_) return fails_before_up(op);
  if (op.action == Action::kAsk) return ask_done(op, status);
  // The peer waits for what has been announced to it.
  if (status != 0 && op.action == Action::kLaned && lane_.is_open()) {
    lane_.close();
    break_off("it does not take what is put into its lane");
  }
  const auto announces = op.action == Action::kAnnounce;
  const auto was_late = op.action == Action::kMessage || op.action == Action::kSeveral;
  if (end_part(op, status)) {
    if (was_late) one_arrived();
    if (!peer_counts_ || op.status != 0 || !tell_access(op)) endpoint_.finish(op);
    return;
  }
  // Of an announcement that has not arrived no read comes.
  if (status != 0 && announces && announced_.erase(op.id) != 0) part_done(op, status);
}

bool Outgoing::tell_access(Op& op) {
  const auto is_message = op.action == Action::kMessage || op.action == Action::kSeveral ||
                          op.action == Action::kParts || op.action == Action::kLaned ||
                          op.action == Action::kAnnounce;
  if (is_message || op.note.data != nullptr) return false;  // told
  op.status = endpoint_.link().notes().take(op.note);
  if (op.status != 0) return false;
  const auto reads = op.direction == Direction::kRead;
  store({.length = op.length, .id = op.remote_key, .flags = reads ? kReads : 0U}, op.note.data);
  add_note(op);
  return true;
}

// Of a write with immediate data, or of another access that the peer counts.
int Outgoing::send_note(Op& op) {
  const auto with_data = (load(op.note.data).flags & kWithData) != 0;
  return send_part(op, with_data ? Kind::kWritten : Kind::kAccessed, op.note, kHead);
}

// ---- the connection ----

void Outgoing::connection_event(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) {
    up_ = true;
    // Not before: one that cannot be dialed has no events, so nothing of it may be posted.
    for (auto* const word : words_) lend(*word);
    const auto said = cm_data_of(connection_);
    auto words = words_in(said);
    takes_several_ = take_word(words, kTakesSeveral);
    peer_counts_ = words == kListens;
    endpoint_.reached(peer_);
    return flush();
  }
  const auto status = reason_of_end(event, event.kind == STM_REFUSED ? -ECONNREFUSED : -ENOTCONN);
  if (!up_ && !ended_ && status == -ETIMEDOUT)
    endpoint_.link().not_connected(peer_, status);
  else if (!ended_ && (event.kind != STM_DISCONNECTED || has_waiting()))
    endpoint_.tell_failed(peer_, status);
  ended_ = true;
  inform(FI_LOG_EP_CTRL,
         "the connection to " + peer_name(peer_) + " has ended: " + fi_strerror(error_of(status)));
  give_up(status);
  endpoint_.has_ended(*this);
  if (!up_) endpoint_.not_reached(peer_, status);
  if (status == -ETIMEDOUT) endpoint_.fell_silent(peer_, status);
}

void Outgoing::not_dialed(int status) {
  if (up_ || ended_) return;
  explain(FI_LOG_EP_CTRL, "connecting to " + peer_name(peer_), status);
  ended_ = true;
  give_up(status);
  endpoint_.has_ended(*this);
  endpoint_.not_reached(peer_, status);
  if (status == -EHOSTUNREACH) endpoint_.fell_silent(peer_, status);
}

// What the program has injected is complete for it. It may make no more calls, so these messages do
// not wait for one that takes the event that the connection is up.
void Outgoing::dialed() {
  if (connection_ == nullptr) return;
  dialed_ = true;
  flush();
}

void Outgoing::give_up(int status) {
  ended_ = true;
  reads_.clear();
  for (auto* const op : std::exchange(waiting_, {})) part_done(*op, status);
  if (auto* const op = std::exchange(gathered_, nullptr); op != nullptr) part_done(*op, status);
  for (const auto& [id, op] : std::exchange(announced_, {})) part_done(*op, status);
  for (const auto& pull : std::exchange(pulls_, {})) part_done(*pull.op, status);
  give_up_asking(status);
  look_again();  // the notes of writes fail as well
}

// ---- announced messages ----

void Outgoing::arrived(RxBuffer& buffer, const stm_event_t& event) {
  if (!has_brought(event)) return;
  const auto kind = static_cast<Kind>(event.tag);
  const auto is_known =
      kind == Kind::kPull || kind == Kind::kLane || kind == Kind::kFreed || kind == Kind::kAnswer;
  if (!is_known || event.length != kHead) return break_off("a message is none of the protocol");
  const auto head = load(buffer.data);
  lend(buffer);
  if (kind == Kind::kPull) return pulled(head);
  if (kind == Kind::kAnswer) return answered(head);
  if (kind == Kind::kLane ? !lane_.open(head) : !lane_.freed(head))
    break_off("what it says of a lane cannot be");
}

void Outgoing::pulled(const Head& head) {
  const auto found = announced_.find(head.id);
  if (found == announced_.end()) return break_off("it pulls what was not announced");
  auto* const op = found->second;
  if (head.length == 0 || head.length > std::max<std::size_t>(op->length, 1))
    return break_off("it pulls more than was announced");
  if (pulls_.size() >= kMostReadsOfPeer) return break_off("it pulls what it does not read");
  announced_.erase(found);
  pulls_.push_back({op, head.length});
  pair();
}

void Outgoing::serve(const stm_event_t& event) {
  if (ended_) return;
  if (reads_.size() >= kMostReadsOfPeer) {
    stm_refuse_read(connection_, event.request);
    return break_off("it reads what it does not pull");
  }
  reads_.push_back({event.request, event.length});
  pair();
}

// The read of a pull has its length. Either may come first.
void Outgoing::pair() {
  for (auto read = reads_.begin(); read != reads_.end();) {
    const auto pull = std::ranges::find(pulls_, read->length, &Pull::length);
    if (pull == pulls_.end()) {
      ++read;
      continue;
    }
    const auto pulled = *pull;
    const auto asked = *read;
    pulls_.erase(pull);
    read = reads_.erase(read);
    answer(pulled, asked);
  }
}

void Outgoing::answer(const Pull& pull, const Read& read) {
  auto& op = *pull.op;
  const auto error = serve_announced(op, read.request, read.length);
  if (error == 0) return;
  // The peer would wait for ever.
  break_off("a message cannot be read");
  part_done(op, error);
}

// ---- accesses that the peer's program makes ----

// To memory that no link can write.

int Outgoing::begin_ask(Op& op) {
  asks_.push_back(&op);
  if (asks_.size() > 1) return 0;
  const auto error = ask(op);
  if (error != 0) asks_.pop_front();
  return error;
}

// The next step of the first one.
int Outgoing::ask(Op& op) {
  if (question_.data == nullptr)
    if (const auto error = endpoint_.link().slots().take(question_); error != 0) return error;
  auto* const bytes = question_.data;
  auto* const more = bytes + kAskHead;
  const auto left = op.length - ask_offset_;
  Head head{.tag = op.remote_address + ask_offset_, .id = ++asks_made_};
  auto size = kAskHead;
  auto what = Access::kRead;
  if (op.atomic) {
    const auto& step = op.atomic->step();
    what = step.op == STM_FETCH_ADD ? Access::kAdd : Access::kSwap;
    head.tag = op.atomic->address();
    head.length = sizeof(std::uint64_t);
    store64(more, step.operand);
    store64(more + sizeof step.operand, step.compare);
    size += kNumbers;
  } else if (op.direction == Direction::kWrite) {
    what = Access::kWrite;
    head.length = std::min(kAskMost, left);
    if (head.length != 0) std::memcpy(more, op.span.data + ask_offset_, head.length);
    size += head.length;
  } else {
    head.length = std::min(kPartsMost, left);
  }
  head.flags = static_cast<std::uint32_t>(what);
  store(head, bytes);
  store64(bytes + kHead, op.asked_key);
  const auto flags = std::exchange(op.stm_flags, 0U);  // those of the first step
  if (const auto error = send_part(op, Kind::kAsk, question_, size, flags); error != 0)
    return error;
  op.parts = 2;  // that message, and the answer
  awaits_answer_ = true;
  may_read_ = what == Access::kRead;
  return 0;
}

void Outgoing::answered(const Head& head) {
  if (!awaits_answer_ || head.id != asks_made_)
    return break_off("it answers what it was not asked");
  awaits_answer_ = false;
  auto& op = *asks_.front();
  if (op.atomic) std::memcpy(op.span.data, &head.data, sizeof head.data);
  if (head.flags != 0) may_read_ = false;
  ask_done(op, head.flags != 0 ? -EACCES : 0);
}

// All parts of a step are done. `done`: it was the last one.
int Outgoing::go_on_asking(Op& op, bool& done) {
  done = false;
  if (std::exchange(may_read_, false)) {
    op.parts = 1;
    const auto error = read_part(op, std::min(kPartsMost, op.length - ask_offset_), ask_offset_);
    if (error != 0) break_off("what it lets be read cannot be read");
    return error;
  }
  if (op.atomic) {
    std::uint64_t old;
    std::memcpy(&old, op.span.data, sizeof old);
    done = !op.atomic->goes_on(old);
  } else {
    const auto most = op.direction == Direction::kWrite ? kAskMost : kPartsMost;
    ask_offset_ += std::min(most, op.length - ask_offset_);
    done = ask_offset_ == op.length;
  }
  return done ? 0 : ask(op);
}

void Outgoing::ask_done(Op& op, int status) {
  if (asks_.empty() || asks_.front() != &op) return never_asked(op, status);
  if (!op.end_part(status)) {
    // A question that has not arrived has no answer.
    if (status != 0 && std::exchange(awaits_answer_, false)) ask_done(op, status);
    return;
  }
  auto done = true;
  if (op.status == 0) op.status = go_on_asking(op, done);
  if (op.status == 0 && !done) return;
  may_read_ = false;
  asked(op);
}

void Outgoing::never_asked(Op& op, int status) {
  op.action = Action::kWrite;
  op.parts = 1;
  part_done(op, status);
}

// The first one is over, and the next one begins.
void Outgoing::asked(Op& op) {
  ask_offset_ = 0;
  asks_.pop_front();
  const auto access = op.direction == Direction::kWrite ? Action::kWrite : Action::kRead;
  op.action = op.atomic ? Action::kAtomic : access;
  op.parts = 1;
  if (op.status == 0 && op.note.data != nullptr) {
    add_note(op);  // its immediate data
  } else {
    const auto status = op.status;
    op.atomic.reset();  // it has no further step
    part_done(op, status);
  }
  if (asks_.empty()) return;
  auto& next = *asks_.front();
  if (const auto error = ask(next); error != 0) {
    next.parts = 1;
    ask_done(next, error);
  }
}

void Outgoing::give_up_asking(int status) {
  while (asks_.size() > 1) {
    auto& op = *asks_.back();
    asks_.pop_back();
    never_asked(op, status);
  }
  if (std::exchange(awaits_answer_, false)) ask_done(*asks_.front(), status);
}

// ---- what an endpoint begins ----

// Messages, writes, reads and atomic operations.

void Endpoint::leaves(const Op& op) {
  AnyEndpoint::leaves(op);
  if (op.reported) copied_ -= op.length;
  part_slots_ -= op.more.size();
  if (op.action == Action::kLaned) --laned_;
  if (op.placeless) --placeless_;
}

void Endpoint::finish(Op& op) {
  if (op.status != 0 && op.injected)
    never_arrived(static_cast<const Outgoing*>(op.owner)->peer(), op.status);
  if (op.status != 0 && op.reported) inform(FI_LOG_EP_DATA, kCopiedIsLost);
  AnyEndpoint::finish(op);
}

void Endpoint::tell_of(const Op& write, std::byte* note) const {
  store({.data = write.data, .length = write.length, .id = write.remote_key, .flags = kWithData},
        note);
}

// What was injected has no context, so no entry of a completion queue could tell of its loss.
void Endpoint::never_arrived(const Address& peer, int status) {
  if (eq_ == nullptr)
    lost(peer, status);
  else if (!eq_->knows_of(&fid))
    eq_->tell_error(&fid, status, {});
}

int Endpoint::take_parts(Op& op, const Segments& segments, const Head& head) {
  op.action = Action::kParts;
  store(head, op.note.data);
  gather(shortened(segments, kEagerMost), op.note.data + kHead);
  for (auto offset = kEagerMost; offset < op.length; offset += kEagerMost) {
    Span span;
    if (const auto error = link_.slots().take(span); error != 0) return error;
    store({.length = offset}, span.data);
    gather(shortened(without(segments, offset), kEagerMost), span.data + kHead);
    op.more.push_back(std::move(span));
    ++part_slots_;
  }
  return 0;
}

int Endpoint::send_at_once(const Outbound& message) {
  if (message.count > kSegments || (message.flags & kLater) != 0) return -FI_EAGAIN;
  const auto length = length_of(message.iov, message.count);
  if (length > kRdmInjectMost) return -FI_EAGAIN;
  const HoldLink lock(link_.mutex());
  if (!enabled_ || !has_place()) return -FI_EAGAIN;
  auto* const to = recent_to(message.to);
  if (to == nullptr || !to->send_at_once(header_of(message, length), message)) return -FI_EAGAIN;
  reports_.sent(message.context, FI_SEND | (message.tagged ? FI_TAGGED : FI_MSG), message.flags);
  return 0;
}

// Runs once per message without a tag, so it is one function.
[[gnu::flatten]] ssize_t Endpoint::send(const Outbound& message) {
  if (message.count > kSegments) return -FI_EINVAL;
  const auto length = length_of(message.iov, message.count);
  LinkLock lock(link_.mutex());
  if (!enabled_) return -FI_EOPBADSTATE;
  if (!finds_place(lock)) return -FI_EAGAIN;
  const auto inject = (message.flags & FI_INJECT) != 0;
  if (length > (inject ? kRdmInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  Outgoing* to = nullptr;
  if (const auto error = connection_to(message.to, to); error != 0) return error;
  const auto head = header_of(message, length);
  const auto is_short =
      length <= kRdmInjectMost || (length <= kEagerMost && !to->has_lane_for(length));
  if (!is_short || (message.flags & kLater) != 0 ||
      !(to->send_at_once(head, message) || send_with_others(message, head, *to)))
    return send_later(message, head, *to);
  reports_.sent(message.context, FI_SEND | (message.tagged ? FI_TAGGED : FI_MSG), message.flags);
  return 0;
}

[[gnu::noinline]] ssize_t Endpoint::send_later(const Outbound& message, const Head& head,
                                               Outgoing& to) {
  if (has_to_wait(message.flags, to)) return -FI_EAGAIN;
  Request request{
      .segments = {}, .context = message.context, .flags = message.flags, .data = message.data};
  read_segments(message.iov, message.desc, message.count, request.segments);
  const auto length = request.segments.length;
  auto& op = begin(request, Direction::kSend, FI_SEND | (message.tagged ? FI_TAGGED : FI_MSG));
  // Who has read an announced message has it in the memory of its receive.
  const auto delivered = (request.flags & FI_DELIVERY_COMPLETE) != 0;
  if (length > kRdmInjectMost && length <= kPartsMost && !delivered && laned_ < kMostLaned &&
      to.has_lane_for(length)) {
    auto& slots = link_.lane_slots(length);
    if (const auto error = slots.take(op.note); error != 0) return start(op, to, error);
    take_laned(op, request.segments, head, to.rest(length));
    return start_copied(op, to, request.flags, 0);
  }
  const auto long_one = length > kEagerMost;
  // Where the link is the program's own, its memory is registered at little cost, and a read
  // saves copies and round trips.
  const auto lane_is_full = to.has_lane() && !link_.is_driven_by_stpd();
  if (delivered ||
      (long_one && (length > kPartsMost || lane_is_full || part_slots_ >= kMostPartSlots)))
    return announce(op, to, request, head);
  auto& slots = link_.slots_for(kHead + length);
  if (const auto error = slots.take(op.note); error != 0) return start(op, to, error);
  store(head, op.note.data);
  if (long_one) return start_copied(op, to, request.flags, take_parts(op, request.segments, head));
  op.action = Action::kMessage;
  gather(request.segments, op.note.data + kHead);
  return start_copied(op, to, request.flags, 0);
}

void Endpoint::take_laned(Op& op, const Segments& segments, const Head& head, std::size_t rest) {
  op.action = Action::kLaned;
  ++laned_;
  const auto put = segments.length - rest;
  auto* const header = laned_header(op.note, put, rest);
  gather(shortened(segments, put), op.note.data);
  if (rest != 0) gather(without(segments, put), header + kHead + kLaneTail);
  store(head, header);
}

ssize_t Endpoint::announce(Op& op, Outgoing& to, const Request& request, const Head& head) {
  op.action = Action::kAnnounce;
  const auto error = take_announced(op, to, request);
  if (error != 0) return start(op, to, error);
  store(head, op.note.data);
  op.placeless = op.span.slots == nullptr && !op.span.own;
  if (op.placeless) ++placeless_;
  return start(op, to, error);
}

// The bytes of the program are its own again. So the operation is complete for it, unless it has
// asked for more. From then on it is like one that was injected.
ssize_t Endpoint::start_copied(Op& op, Outgoing& to, std::uint64_t flags, int error) {
  const auto early = error == 0 && (flags & kLater) == 0 && !op.injected && to.is_up() &&
                     copied_ + op.length <= kMostCopied;
  // Others wait for those that have found no room.
  if (early && !(op.action == Action::kMessage && to.takes_several())) op.stm_flags |= STM_LAZY;
  if (const auto result = start(op, to, error); result != 0 || !early) return result;
  if (op.status != 0) return 0;  // it fails when all of it has ended
  reports_.complete(op);
  op.injected = op.reported = true;
  ++injected_;
  copied_ += op.length;
  return 0;
}

// ---- several as one ----

// Short messages that leave as one. While some that have found no room in the peer's ring are on
// their way, later ones wait behind each other. Where both programs share CPUs with others, few of
// them would else be under way each time that the peer's program runs.

[[gnu::noinline]] bool Endpoint::send_with_others(const Outbound& message, const Head& head,
                                                  Outgoing& to) {
  const auto size = kHead + static_cast<std::size_t>(head.length);
  if (!to.gathers() || head.length > kRdmInjectMost || copied_ + size > kMostCopied) return false;
  const auto* const waits = to.gathered();
  if (waits != nullptr && waits->length + size > kBuffer && to.send_gathered() != 0) return false;
  if (to.gathered() == nullptr) {
    auto& made =
        begin({.segments = {}, .flags = FI_INJECT | kUntold}, Direction::kSend, FI_SEND | FI_MSG);
    made.reported = true;
    made.owner = &to;
    made.action = Action::kSeveral;
    if (const auto error = link_.slots().take(made.note); error != 0) {
      started(made, error);
      return false;
    }
    to.gather(made);
    link_.leave_soon(to);
  }
  auto& op = *to.gathered();
  auto* place = op.note.data + op.length;
  store(head, place);
  place += kHead;
  for (std::size_t i = 0; i < message.count; ++i) {
    const auto& part = message.iov[i];
    if (part.iov_len != 0) std::memcpy(place, part.iov_base, part.iov_len);
    place += part.iov_len;
  }
  op.length += size;
  copied_ += size;
  return true;
}

int Outgoing::begin_several(Op& op) {
  const auto error = send_part(op, Kind::kSeveral, op.note, op.length);
  if (error == 0) ++late_;
  return error;
}

// They are complete for the program, so they do not fail because the queue has no place.
int Outgoing::send_gathered() {
  auto& op = *gathered_;
  const auto error = begin(op);
  if (error == -EAGAIN) {
    endpoint_.link().await(*this);
    return error;
  }
  gathered_ = nullptr;
  if (error != 0) part_done(op, error);
  return 0;
}

void Outgoing::one_arrived() {
  if (late_ != 0) --late_;
  if (gathered_ != nullptr && !ended_ && late_ < kMostLate) send_gathered();
}

// The program may make no more calls, and so hear of no message that has arrived.
void Outgoing::leave() {
  if (gathered_ != nullptr && !ended_) send_gathered();
}

void Outgoing::look_again() {
  SendingConnection::look_again();
  if (gathered_ != nullptr && !ended_ && late_ < kMostLate) send_gathered();
}

}  // namespace stp::fi::rdm
