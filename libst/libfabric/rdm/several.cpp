// SPDX-License-Identifier: BSD-3-Clause
// Short messages that leave as one. While some that have found no room in the peer's ring are on
// their way, later ones wait behind each other. Where both programs share CPUs with others, few of
// them would else be under way each time that the peer's program runs.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {

// ---- who sends them ----

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

void Outgoing::look_again() {
  SendingConnection::look_again();
  if (gathered_ != nullptr && !ended_ && late_ < kMostLate) send_gathered();
}

// ---- who receives them ----

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
  if (!receive && kept_ >= endpoint_.most_kept() && !leaves_) return false;
  copy_out(message);
  kept_ += cost_of(message);
  if (receive)
    endpoint_.deliver(std::move(message), std::move(*receive));
  else
    endpoint_.matching().add(std::move(message));
  return true;
}

}  // namespace stp::fi::rdm
