// SPDX-License-Identifier: BSD-3-Clause
// Messages of FI_EP_MSG.
#include <algorithm>
#include <cstring>

#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

ssize_t Ep::send(const Outbound& message) {
  Request request{
      .segments = {}, .context = message.context, .flags = message.flags, .data = message.data};
  if (read_segments(message.iov, message.desc, message.count, request.segments) != 0)
    return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  if (!is_up()) return -FI_ENOTCONN;
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto length = request.segments.length;
  if (length > ((request.flags & FI_INJECT) != 0 ? kInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  // Who has read an announced message has it in the memory of its receive.
  const auto delivered = (request.flags & FI_DELIVERY_COMPLETE) != 0;
  return length <= kShortMost && !delivered ? send_short(request) : announce(request);
}

ssize_t Ep::send_short(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  const auto copied = with_data || (request.flags & FI_INJECT) != 0;
  const auto& segments = request.segments;
  const auto flags = (request.flags & FI_FENCE) != 0 ? unsigned{STM_FENCE} : 0;
  if ((request.flags & kUntold) != 0 && send_at_once(request, at_once_, flags | STM_QUIET)) {
    reports_.sent(nullptr, FI_SEND | FI_MSG, request.flags);
    return 0;
  }
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  op.owner = this;
  if ((copied || !is_registered(segments)) && send_at_once(request, op, flags)) return sent(op, 0);
  auto error = copied ? link_.slots().take(op.span) : link_.span_of(segments, true, op.span);
  if (error != 0) return sent(op, error);
  if (copied) gather(segments, op.span.data);
  if (with_data) store64(op.span.data + segments.length, request.data);
  const auto kind = with_data ? MessageKind::kData : MessageKind::kPlain;
  return sent(op, stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), flags,
                           static_cast<std::uint32_t>(kind), op.span.memory, op.span.data,
                           segments.length + (with_data ? kTrailer : 0)));
}

ssize_t Ep::sent(Op& op, int error) {
  if (error == 0) sends_.push_back(&op);
  return started(op, error);
}

bool Ep::send_at_once(const Request& request, Op& op, unsigned flags) {
  const auto& segments = request.segments;
  std::array<std::byte, kTrailer> trailer;
  std::array<iovec, kSegments + 1> parts;
  auto* end = std::copy_n(segments.iov.begin(), segments.count, parts.begin());
  auto kind = MessageKind::kPlain;
  if ((request.flags & FI_REMOTE_CQ_DATA) != 0) {
    kind = MessageKind::kData;
    store64(trailer.data(), request.data);
    *end++ = {trailer.data(), trailer.size()};
  }
  return SendingConnection::send_at_once(op, flags, static_cast<std::uint32_t>(kind), nullptr, 0,
                                         parts.data(),
                                         static_cast<std::size_t>(end - parts.begin()));
}

// Two parts: the announcement, and that the peer has read the message.
ssize_t Ep::announce(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  op.owner = this;
  auto error = link_.notes().take(op.note);
  if (error != 0) return sent(op, error);
  store64(op.note.data, request.segments.length);
  store64(op.note.data + 8, with_data ? request.data : 0);
  auto segments = request.segments;
  if ((request.flags & FI_INJECT) != 0) segments.desc = {};  // the bytes are copied
  error = link_.span_of(segments, true, op.span);
  const auto kind = with_data ? MessageKind::kAnnouncedData : MessageKind::kAnnounced;
  if (error == 0)
    error = stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), op.stm_flags,
                     static_cast<std::uint32_t>(kind), op.note.memory, op.note.data, kAnnouncement);
  if (error == 0) {
    op.parts = 2;
    announced_.push_back(&op);
  }
  return sent(op, error);
}

void Ep::serve(const stm_event_t& event) {
  // An empty message is read as one byte of any value.
  if (announced_.empty() || event.length > std::max<std::size_t>(announced_.front()->length, 1)) {
    stm_refuse_read(connection_, event.request);
    break_off("it reads what was not announced");
    return;
  }
  auto& op = *announced_.front();
  announced_.pop_front();
  const auto& from = op.length != 0 ? op.span : op.note;
  const auto error =
      stm_serve_read(connection_, event.request, reinterpret_cast<std::uintptr_t>(&op), 0,
                     from.memory, from.data, static_cast<std::size_t>(event.length));
  if (error != 0) part_done(op, error);
}

// Messages that come, and receives.

namespace {

bool is_announced(MessageKind kind) {
  return kind == MessageKind::kAnnounced || kind == MessageKind::kAnnouncedData;
}

}  // namespace

ssize_t Ep::receive(const Inbound& inbound) {
  PostedReceive receive{.context = inbound.context, .flags = inbound.flags, .segments = {}};
  if (read_segments(inbound.iov, inbound.desc, inbound.count, receive.segments) != 0)
    return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  if (srx_ != nullptr) return -FI_EINVAL;
  if (ended_ && arrivals_.empty()) return -FI_ENOTCONN;
  if (own_.posted.size() >= own_.most) return -FI_EAGAIN;
  own_.posted.push_back(std::move(receive));
  if (!arrivals_.empty()) match();
  return 0;
}

void Ep::arrived(RxBuffer& buffer, const stm_event_t& event) {
  if (event.status == -EMSGSIZE) break_off("a message is longer than a buffer");
  if (event.status != 0) return;
  const auto kind = static_cast<MessageKind>(event.tag);
  const auto length = static_cast<std::size_t>(event.length);
  if (!is_legal(kind, buffer.data, length)) {
    break_off("a message is none of the protocol");
    return;
  }
  if (kind == MessageKind::kWritten) {
    reports_.tell_written(load64(buffer.data), load64(buffer.data + 8), FI_ADDR_NOTAVAIL);
    lend(buffer);
    return;
  }
  arrivals_.push_back({&buffer, length, kind});
  match();
}

void Ep::match() {
  while (!arrivals_.empty()) {
    const auto arrival = arrivals_.front();
    // One announced message is read at a time.
    if (is_announced(arrival.kind) && reading_ != nullptr) return;
    if (receives().posted.empty()) {
      auto& hungry = receives().hungry;
      if (srx_ != nullptr && std::ranges::find(hungry, this) == hungry.end())
        hungry.push_back(this);
      return;
    }
    auto receive = std::move(receives().posted.front());
    receives().posted.pop_front();
    arrivals_.pop_front();
    if (is_announced(arrival.kind))
      take_announced(receive, arrival);
    else
      take_short(receive, arrival);
  }
}

void Ep::take_short(PostedReceive& receive, const Arrival& arrival) {
  Outcome outcome;
  auto length = arrival.length;
  if (arrival.kind == MessageKind::kData) {
    length -= kTrailer;
    outcome.flags = FI_REMOTE_CQ_DATA;
    outcome.data = load64(arrival.buffer->data + length);
  }
  outcome.length = std::min(length, receive.segments.length);
  outcome.overflow = length - outcome.length;
  scatter(arrival.buffer->data, receive.segments, outcome.length);
  lend(*arrival.buffer);
  tell_received(receive, outcome);
}

void Ep::take_announced(PostedReceive& receive, const Arrival& arrival) {
  const auto length = load64(arrival.buffer->data);
  const auto with_data = arrival.kind == MessageKind::kAnnouncedData;
  auto& op = link_.take_op();
  op.owner = this;
  op.direction = Direction::kReceive;
  op.context = receive.context;
  op.flags = FI_RECV | FI_MSG | (with_data ? FI_REMOTE_CQ_DATA : 0);
  op.told = reports_.tells(Direction::kReceive, receive.flags);
  op.data = with_data ? load64(arrival.buffer->data + 8) : 0;
  op.parts = 1;
  lend(*arrival.buffer);
  op.length = std::min<std::size_t>(length, receive.segments.length);
  op.overflow = length - op.length;
  reading_ = &op;
  link_.watch(*this);
  // The sender waits for being read, even where the receive has no room.
  std::byte nothing{};
  const auto landing =
      op.length != 0 ? shortened(receive.segments, op.length) : one_segment(&nothing, 1, nullptr);
  auto error = link_.span_of(landing, false, op.span);
  if (op.length != 0 && op.span.data != landing.iov[0].iov_base) op.landing = landing;
  if (error == 0)
    error = stm_read(connection_, reinterpret_cast<std::uintptr_t>(&op), 0, op.span.memory,
                     op.span.data, landing.length);
  if (error != 0) part_done(op, error);
}

void Ep::tell_received(const PostedReceive& receive, Outcome outcome) {
  outcome.direction = Direction::kReceive;
  outcome.context = receive.context;
  outcome.flags |= FI_RECV | FI_MSG;
  outcome.told = reports_.tells(Direction::kReceive, receive.flags);
  reports_.complete(outcome);
}

ssize_t Ep::cancel(void* context) {
  const LinkLock lock(link_.mutex());
  const auto found = std::ranges::find(own_.posted, context, &PostedReceive::context);
  if (found == own_.posted.end()) return -FI_ENOENT;
  const auto receive = std::move(*found);
  own_.posted.erase(found);
  Outcome outcome;
  outcome.status = -ECANCELED;
  tell_received(receive, outcome);
  return 0;
}

}  // namespace stp::fi
