// SPDX-License-Identifier: BSD-3-Clause
// FI_MSG: messages that go.
#include <algorithm>
#include <cstring>

#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {
namespace {

ssize_t send(fid_ep* ep, Request&& request, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return ep_of(ep).send(request);
  });
}

ssize_t send(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, void* context,
             std::uint64_t data, std::uint64_t flags) {
  Request request{.segments = {}, .context = context, .data = data};
  if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
  if (const auto error = read_segments(iov, desc, count, request.segments); error != 0)
    return error;
  return send(ep, std::move(request), flags);
}

ssize_t receive(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, void* context,
                std::uint64_t flags) {
  PostedReceive posted{.context = context, .flags = flags, .segments = {}};
  if (const auto error = read_segments(iov, desc, count, posted.segments); error != 0) return error;
  return guarded([&] { return ep_of(ep).receive(std::move(posted)); });
}

}  // namespace

fi_ops_msg ep_msg_calls{
    .size = sizeof(fi_ops_msg),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t, void* context) {
          return guarded([&] {
            return ep_of(ep).receive({.context = context,
                                      .flags = ep_of(ep).rx_flags(),
                                      .segments = one_segment(buffer, length, desc)});
          });
        },
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t, void* context) {
          return receive(ep, iov, desc, count, context, ep_of(ep).rx_flags());
        },
    .recvmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~(kRxOpFlags | FI_MORE)) != 0) return -FI_EBADFLAGS;
      return receive(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->context, flags);
    },
    .send =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t,
           void* context) {
          return send(ep, {.segments = one_segment(buffer, length, desc), .context = context},
                      ep_of(ep).tx_flags());
        },
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t, void* context) {
          return send(ep, iov, desc, count, context, 0, ep_of(ep).tx_flags());
        },
    .sendmsg =
        [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) {
          return send(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->context, msg->data, flags);
        },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t) {
          return send(ep, {.segments = one_segment(buffer, length, nullptr)}, FI_INJECT | kUntold);
        },
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t, void* context) {
          return send(
              ep, {.segments = one_segment(buffer, length, desc), .context = context, .data = data},
              ep_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t) {
          return send(ep, {.segments = one_segment(buffer, length, nullptr), .data = data},
                      FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

ssize_t Ep::send(const Request& request) {
  const LinkLock lock(link_.mutex());
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
    has_injected_at_once_ = true;
    reports_.sent(nullptr, FI_SEND | FI_MSG, request.flags);
    return 0;
  }
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  if ((copied || !is_registered(segments)) && send_at_once(request, op, flags)) return 0;
  int error = 0;
  if (copied) {
    error = link_.slots().take(op.span);
    if (error != 0) return posted(op, error);
    gather(segments, op.span.data);
    if (with_data) store64(op.span.data + segments.length, request.data);
  } else {
    error = link_.span_of(segments, true, op.span);
  }
  const auto kind = with_data ? MessageKind::kData : MessageKind::kPlain;
  if (error == 0)
    error = stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), flags,
                     static_cast<std::uint32_t>(kind), op.span.memory, op.span.data,
                     segments.length + (with_data ? kTrailer : 0));
  return posted(op, error);
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
  return stm_send_short(connection_, reinterpret_cast<std::uintptr_t>(&op), flags,
                        static_cast<std::uint32_t>(kind), nullptr, 0, parts.data(),
                        static_cast<std::size_t>(end - parts.begin())) == 0;
}

// Two parts: the announcement, and that the peer has read the message.
ssize_t Ep::announce(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  auto error = link_.slots().take(op.note);
  if (error != 0) return posted(op, error);
  store64(op.note.data, request.segments.length);
  store64(op.note.data + 8, with_data ? request.data : 0);
  auto segments = request.segments;
  if ((request.flags & FI_INJECT) != 0) segments.desc = {};  // the bytes are copied
  error = link_.span_of(segments, true, op.span);
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  const auto kind = with_data ? MessageKind::kAnnouncedData : MessageKind::kAnnounced;
  if (error == 0)
    error =
        stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), static_cast<unsigned>(flags),
                 static_cast<std::uint32_t>(kind), op.note.memory, op.note.data, kAnnouncement);
  if (error != 0) return posted(op, error);
  op.parts = 2;
  announced_.push_back(&op);
  return 0;
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

void Ep::post(RxBuffer& buffer) {
  if (state_ == State::kEnded || closing_) return;
  stm_receive(connection_, reinterpret_cast<std::uintptr_t>(&buffer), block_->memory, buffer.data,
              kBuffer);
}

ssize_t Ep::receive(PostedReceive&& receive) {
  const LinkLock lock(link_.mutex());
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
  if (!is_legal(kind, buffer.data, length)) {
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

// FI_RMA: puts and gets. FI_ATOMIC: FetchOps. A put is complete when it is in the peer's memory:
// FI_DELIVERY_COMPLETE asks for nothing more.

namespace {

ssize_t write(fid_ep* ep, Request&& request, const Target& target, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return ep_of(ep).write(request, target);
  });
}

ssize_t read(fid_ep* ep, Request&& request, const Target& target, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return ep_of(ep).read(request, target);
  });
}

// 0: `request` and `target` have what the message says.
int read_message(const fi_msg_rma& msg, std::uint64_t flags, Request& request, Target& target) {
  if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
  if (msg.rma_iov_count != 1) return -FI_EINVAL;
  const auto error = read_segments(msg.msg_iov, msg.desc, msg.iov_count, request.segments);
  if (error != 0) return error;
  if (msg.rma_iov[0].len != request.segments.length) return -FI_EINVAL;
  request.context = msg.context;
  request.data = msg.data;
  target = {.address = msg.rma_iov[0].addr, .key = msg.rma_iov[0].key};
  return 0;
}

}  // namespace

fi_ops_rma ep_rma_calls{
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t,
           std::uint64_t address, std::uint64_t key, void* context) {
          return read(ep, {.segments = one_segment(buffer, length, desc), .context = context},
                      {address, key}, ep_of(ep).tx_flags() & ~FI_INJECT);
        },
    .readv = [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                std::uint64_t address, std::uint64_t key, void* context) -> ssize_t {
      Request request{.segments = {}, .context = context};
      if (const auto error = read_segments(iov, desc, count, request.segments); error != 0)
        return error;
      return read(ep, std::move(request), {address, key}, ep_of(ep).tx_flags() & ~FI_INJECT);
    },
    .readmsg = [](fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) -> ssize_t {
      Request request;
      Target target;
      if (const auto error = read_message(*msg, flags, request, target); error != 0) return error;
      return read(ep, std::move(request), target, flags & ~FI_INJECT);
    },
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t,
           std::uint64_t address, std::uint64_t key, void* context) {
          return write(ep, {.segments = one_segment(buffer, length, desc), .context = context},
                       {address, key}, ep_of(ep).tx_flags());
        },
    .writev = [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                 std::uint64_t address, std::uint64_t key, void* context) -> ssize_t {
      Request request{.segments = {}, .context = context};
      if (const auto error = read_segments(iov, desc, count, request.segments); error != 0)
        return error;
      return write(ep, std::move(request), {address, key}, ep_of(ep).tx_flags());
    },
    .writemsg = [](fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) -> ssize_t {
      Request request;
      Target target;
      if (const auto error = read_message(*msg, flags, request, target); error != 0) return error;
      return write(ep, std::move(request), target, flags);
    },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t, std::uint64_t address,
           std::uint64_t key) {
          return write(ep, {.segments = one_segment(buffer, length, nullptr)}, {address, key},
                       FI_INJECT | kUntold);
        },
    .writedata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t, std::uint64_t address, std::uint64_t key, void* context) {
          return write(
              ep, {.segments = one_segment(buffer, length, desc), .context = context, .data = data},
              {address, key}, ep_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t,
           std::uint64_t address, std::uint64_t key) {
          return write(ep, {.segments = one_segment(buffer, length, nullptr), .data = data},
                       {address, key}, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

ssize_t Ep::write(const Request& request, const Target& target) {
  const LinkLock lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (request.segments.length > (inject ? kInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  auto& op = begin(request, Direction::kWrite, FI_RMA | FI_WRITE);
  auto segments = request.segments;
  if (inject) segments.desc = {};  // the bytes are copied
  auto error = link_.span_of(segments, true, op.span);
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  if (error == 0)
    error = stm_put(connection_, reinterpret_cast<std::uintptr_t>(&op),
                    static_cast<unsigned>(flags), op.span.memory, op.span.data, segments.length,
                    static_cast<std::uint32_t>(target.key), target.address);
  if (error != 0) return posted(op, error);
  if ((request.flags & FI_REMOTE_CQ_DATA) != 0) {
    ++op.parts;
    if (const auto status = tell_written(op); status != 0) part_done(op, status);
  }
  return 0;
}

// Immediate data follows what was written, in a message that no receive is needed for.
int Ep::tell_written(Op& op) {
  if (const auto error = link_.slots().take(op.note); error != 0) return error;
  store64(op.note.data, op.length);
  store64(op.note.data + 8, op.data);
  return stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), STM_FENCE,
                  static_cast<std::uint32_t>(MessageKind::kWritten), op.note.memory, op.note.data,
                  kAnnouncement);
}

ssize_t Ep::read(const Request& request, const Target& target) {
  const LinkLock lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  if (request.segments.length > kMostMessage) return -FI_EMSGSIZE;
  auto& op = begin(request, Direction::kRead, FI_RMA | FI_READ);
  if (request.segments.length == 0) {  // there is nothing to get
    part_done(op, 0);
    return 0;
  }
  auto error = link_.span_of(request.segments, false, op.span);
  if (op.span.data != request.segments.iov[0].iov_base) op.landing = request.segments;
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  if (error == 0)
    error =
        stm_get(connection_, reinterpret_cast<std::uintptr_t>(&op), static_cast<unsigned>(flags),
                op.span.memory, op.span.data, request.segments.length,
                static_cast<std::uint32_t>(target.key), target.address);
  return posted(op, error);
}

ssize_t Ep::fetch(const Request& request, fi_addr_t, const Target& target,
                  const Function& function) {
  const LinkLock lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto reads = function.kind != Function::Kind::kPlain;
  auto& op = begin(request, reads ? Direction::kRead : Direction::kWrite,
                   FI_ATOMIC | (reads ? FI_READ : FI_WRITE));
  op.stm_flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  auto error = prepare_atomic(link_, op, target, function);
  if (op.atomic->repeats()) ++repeating_;
  if (error == 0) error = post_step(connection_, op);
  return posted(op, error);
}

}  // namespace stp::fi
