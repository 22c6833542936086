// SPDX-License-Identifier: BSD-3-Clause
// Accesses to memory that no link can write: the program that has it makes them, when it is asked.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {
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

// ---- who asks ----

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

// ---- who is asked ----

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
