// SPDX-License-Identifier: BSD-3-Clause
// FI_MSG of endpoints of FI_EP_RDM.
#include "libst/libfabric/calls.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {
namespace {

constexpr std::uint64_t kMessageFlags = kRdmTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

ssize_t send(fid_ep* ep, Outbound&& message, std::uint64_t flags) {
  return guarded([&] {
    message.request.flags = flags;
    return endpoint_of(ep).send(message);
  });
}

ssize_t send(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
             void* context, std::uint64_t data, std::uint64_t flags) {
  Outbound message{.request = {.segments = {}, .context = context, .data = data}, .to = to};
  const auto error = read_segments(iov, desc, count, message.request.segments);
  return error != 0 ? error : send(ep, std::move(message), flags);
}

ssize_t receive(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                void* context, std::uint64_t flags) {
  Inbound inbound{.receive = {.context = context, .flags = flags, .segments = {}}, .from = from};
  if (const auto error = read_segments(iov, desc, count, inbound.receive.segments); error != 0)
    return error;
  return guarded([&] { return endpoint_of(ep).receive(std::move(inbound)); });
}

}  // namespace

fi_ops_msg msg_calls{
    .size = sizeof(fi_ops_msg),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           void* context) {
          const iovec iov{buffer, length};
          return receive(ep, &iov, &desc, 1, from, context, endpoint_of(ep).rx_flags());
        },
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           void* context) {
          return receive(ep, iov, desc, count, from, context, endpoint_of(ep).rx_flags());
        },
    .recvmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~(kRdmRxOpFlags | FI_MORE)) != 0) return -FI_EBADFLAGS;
      return receive(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->context, flags);
    },
    .send =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           void* context) {
          return send(
              ep,
              {.request = {.segments = one_segment(buffer, length, desc), .context = context},
               .to = to},
              endpoint_of(ep).tx_flags());
        },
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           void* context) {
          return send(ep, iov, desc, count, to, context, 0, endpoint_of(ep).tx_flags());
        },
    .sendmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kMessageFlags) != 0) return -FI_EBADFLAGS;
      return send(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->context, msg->data,
                  flags);
    },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) {
          return send(ep, {.request = {.segments = one_segment(buffer, length, nullptr)}, .to = to},
                      FI_INJECT | kUntold);
        },
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, void* context) {
          return send(ep,
                      {.request = {.segments = one_segment(buffer, length, desc),
                                   .context = context,
                                   .data = data},
                       .to = to},
                      endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to) {
          return send(ep,
                      {.request = {.segments = one_segment(buffer, length, nullptr), .data = data},
                       .to = to},
                      FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

}  // namespace stp::fi::rdm
