// SPDX-License-Identifier: BSD-3-Clause
// FI_MSG: messages that go.
#include <cstring>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/ep.h"

namespace stp::fi {
namespace {

constexpr std::uint64_t kMessageFlags = kTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

ssize_t send(fid_ep* ep, Request&& request, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return ep_of(ep).send(request);
  });
}

ssize_t send(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, void* context,
             std::uint64_t data, std::uint64_t flags) {
  Request request{.segments = {}, .context = context, .data = data};
  if ((flags & ~kMessageFlags) != 0) return -FI_EBADFLAGS;
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
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto length = request.segments.length;
  if (length > ((request.flags & FI_INJECT) != 0 ? kInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  return length <= kShortMost ? send_short(request) : announce(request);
}

ssize_t Ep::send_short(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  const auto copied = with_data || (request.flags & FI_INJECT) != 0;
  const auto& segments = request.segments;
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  int error = 0;
  if (copied) {
    error = link_.slots().take(op.span);
    if (error != 0) return posted(op, error);
    gather(segments, op.span.data);
    if (with_data) store64(op.span.data + segments.length, request.data);
  } else {
    error = link_.span_of(segments, true, op.span);
  }
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  const auto kind = with_data ? MessageKind::kData : MessageKind::kPlain;
  if (error == 0)
    error = stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op),
                     static_cast<unsigned>(flags), static_cast<std::uint32_t>(kind), op.span.memory,
                     op.span.data, segments.length + (with_data ? kTrailer : 0));
  return posted(op, error);
}

// Two parts: the announcement, and that the peer has read the message.
ssize_t Ep::announce(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  auto error = link_.slots().take(op.note);
  if (error != 0) return posted(op, error);
  store64(op.note.data, request.segments.length);
  store64(op.note.data + 8, with_data ? request.data : 0);
  error = link_.span_of(request.segments, true, op.span);
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
  if (announced_.empty() || event.length > announced_.front()->length) {
    stm_refuse_read(connection_, event.request);
    break_off("it reads what was not announced");
    return;
  }
  auto& op = *announced_.front();
  announced_.pop_front();
  const auto error =
      stm_serve_read(connection_, event.request, reinterpret_cast<std::uintptr_t>(&op), 0,
                     op.span.memory, op.span.data, static_cast<std::size_t>(event.length));
  if (error != 0) part_done(op, error);
}

}  // namespace stp::fi
