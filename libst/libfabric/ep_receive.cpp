// SPDX-License-Identifier: BSD-3-Clause
// Messages that come, and receives.
#include <algorithm>
#include <cstring>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/cq.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

bool is_announced(MessageKind kind) {
  return kind == MessageKind::kAnnounced || kind == MessageKind::kAnnouncedData;
}

// Whether a message of that kind may have that length.
bool is_legal(MessageKind kind, std::size_t length) {
  switch (kind) {
    case MessageKind::kPlain:
      return length <= kShortMost;
    case MessageKind::kData:
      return length >= kTrailer && length <= kBuffer;
    case MessageKind::kAnnounced:
    case MessageKind::kAnnouncedData:
    case MessageKind::kWritten:
      return length == kAnnouncement;
  }
  return false;
}

}  // namespace

void Ep::post(RxBuffer& buffer) {
  if (state_ == State::kEnded || closing_) return;
  stm_receive(connection_, reinterpret_cast<std::uintptr_t>(&buffer), block_->memory, buffer.data,
              kBuffer);
}

ssize_t Ep::receive(PostedReceive&& receive) {
  std::lock_guard const lock(link_.mutex());
  if (srx_ != nullptr) return -FI_EINVAL;
  if (state_ == State::kEnded && arrivals_.empty()) return -FI_ENOTCONN;
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
  if (!is_legal(kind, length)) {
    break_off("a message is none of the protocol");
    return;
  }
  if (kind == MessageKind::kWritten) {
    reports_.tell_written(load64(buffer.data), load64(buffer.data + 8), FI_ADDR_NOTAVAIL);
    post(buffer);
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
  post(*arrival.buffer);
  tell_received(receive, outcome);
}

void Ep::take_announced(PostedReceive& receive, const Arrival& arrival) {
  const auto length = load64(arrival.buffer->data);
  const auto with_data = arrival.kind == MessageKind::kAnnouncedData;
  auto& op = begin({.segments = receive.segments,
                    .context = receive.context,
                    .flags = receive.flags,
                    .data = with_data ? load64(arrival.buffer->data + 8) : 0},
                   Direction::kReceive, FI_RECV | FI_MSG | (with_data ? FI_REMOTE_CQ_DATA : 0));
  post(*arrival.buffer);
  op.length = std::min<std::size_t>(length, receive.segments.length);
  op.overflow = length - op.length;
  reading_ = &op;
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
  std::lock_guard const lock(link_.mutex());
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
