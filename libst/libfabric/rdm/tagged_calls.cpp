// SPDX-License-Identifier: BSD-3-Clause
// FI_TAGGED of endpoints of FI_EP_RDM.
#include "libst/libfabric/calls.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {
namespace {

constexpr std::uint64_t kTaggedFlags = kRdmTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;
constexpr std::uint64_t kKnownRxFlags = FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD;

ssize_t send(fid_ep* ep, Request&& request, fi_addr_t to, std::uint64_t tag, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return endpoint_of(ep).send(
        {.request = std::move(request), .to = to, .tagged = true, .tag = tag});
  });
}

ssize_t send(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, Request&& request,
             fi_addr_t to, std::uint64_t tag, std::uint64_t flags) {
  const auto error = read_segments(iov, desc, count, request.segments);
  return error != 0 ? error : send(ep, std::move(request), to, tag, flags);
}

ssize_t receive(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                Receive&& receive) {
  receive.tagged = true;
  if (const auto error = read_segments(iov, desc, count, receive.segments); error != 0)
    return error;
  return guarded(
      [&] { return endpoint_of(ep).receive({.receive = std::move(receive), .from = from}); });
}

// FI_MULTI_RECV is for messages without tags.
std::uint64_t rx_flags(fid_ep* ep) {
  return endpoint_of(ep).rx_flags() & ~FI_MULTI_RECV;
}

}  // namespace

fi_ops_tagged tagged_calls{
    .size = sizeof(fi_ops_tagged),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           std::uint64_t tag, std::uint64_t ignore, void* context) {
          const iovec iov{buffer, length};
          return receive(ep, &iov, &desc, 1, from,
                         {.context = context, .flags = rx_flags(ep), .tag = tag, .ignore = ignore});
        },
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t tag, std::uint64_t ignore, void* context) {
          return receive(ep, iov, desc, count, from,
                         {.context = context, .flags = rx_flags(ep), .tag = tag, .ignore = ignore});
        },
    .recvmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kKnownRxFlags) != 0) return -FI_EBADFLAGS;
      if ((flags & FI_DISCARD) != 0 && (flags & (FI_PEEK | FI_CLAIM)) == 0) return -FI_EBADFLAGS;
      return receive(
          ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr,
          {.context = msg->context, .flags = flags, .tag = msg->tag, .ignore = msg->ignore});
    },
    .send =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           std::uint64_t tag, void* context) {
          return send(ep, {.segments = one_segment(buffer, length, desc), .context = context}, to,
                      tag, endpoint_of(ep).tx_flags());
        },
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t tag, void* context) {
          return send(ep, iov, desc, count, {.segments = {}, .context = context}, to, tag,
                      endpoint_of(ep).tx_flags());
        },
    .sendmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kTaggedFlags) != 0) return -FI_EBADFLAGS;
      return send(ep, msg->msg_iov, msg->desc, msg->iov_count,
                  {.segments = {}, .context = msg->context, .data = msg->data}, msg->addr, msg->tag,
                  flags);
    },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t tag) {
          return send(ep, {.segments = one_segment(buffer, length, nullptr)}, to, tag,
                      FI_INJECT | kUntold);
        },
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t tag, void* context) {
          return send(
              ep, {.segments = one_segment(buffer, length, desc), .context = context, .data = data},
              to, tag, endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t tag) {
          return send(ep, {.segments = one_segment(buffer, length, nullptr), .data = data}, to, tag,
                      FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

}  // namespace stp::fi::rdm
