// SPDX-License-Identifier: BSD-3-Clause
// FI_TAGGED: the calls of an endpoint of FI_EP_RDM for messages with tags. MPI makes two of them
// for each message, so those of one buffer are one function each, down to the managed API.
#include "libst/libfabric/provider.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {
namespace {

Endpoint& tagged_end(fid_ep* ep) {
  return static_cast<Endpoint&>(*ep);
}

// FI_MULTI_RECV is for messages without tags.
std::uint64_t tagged_rx_flags(fid_ep* ep) {
  return tagged_end(ep).rx_flags() & ~FI_MULTI_RECV;
}

ssize_t send_tagged(fid_ep* ep, const Outbound& message) {
  if (lacks_some(message.iov, message.count)) return -FI_EINVAL;
  return guarded([&] { return tagged_end(ep).send(message); });
}

ssize_t receive_tagged(fid_ep* ep, const Inbound& inbound) {
  if (lacks_landing(inbound)) return -FI_EINVAL;
  return guarded([&] { return tagged_end(ep).receive(inbound); });
}

// From one buffer.
[[gnu::noinline]] ssize_t send_one(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                                   std::uint64_t flags, std::uint64_t data, fi_addr_t to,
                                   std::uint64_t tag, void* context) {
  const iovec iov{const_cast<void*>(buffer), length};
  return send_tagged(ep, {.iov = &iov,
                          .desc = &desc,
                          .count = 1,
                          .context = context,
                          .flags = flags,
                          .data = data,
                          .to = to,
                          .tagged = true,
                          .tag = tag});
}

// The same, without what few messages need.
ssize_t send_if_short(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                      std::uint64_t flags, fi_addr_t to, std::uint64_t tag, void* context) {
  return guarded([&]() -> ssize_t {
    const iovec iov{const_cast<void*>(buffer), length};
    const auto error = tagged_end(ep).send_at_once({.iov = &iov,
                                                    .count = 1,
                                                    .context = context,
                                                    .flags = flags,
                                                    .to = to,
                                                    .tagged = true,
                                                    .tag = tag});
    if (error == 0) return 0;
    return send_one(ep, buffer, length, desc, flags, 0, to, tag, context);
  });
}

[[gnu::flatten]] ssize_t call_send(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                                   fi_addr_t to, std::uint64_t tag, void* context) {
  return send_if_short(ep, buffer, length, desc, tagged_end(ep).tx_flags(), to, tag, context);
}

[[gnu::flatten]] ssize_t call_inject(fid_ep* ep, const void* buffer, std::size_t length,
                                     fi_addr_t to, std::uint64_t tag) {
  return send_if_short(ep, buffer, length, nullptr, FI_INJECT | kUntold, to, tag, nullptr);
}

[[gnu::flatten]] ssize_t call_recv(fid_ep* ep, void* buffer, std::size_t length, void* desc,
                                   fi_addr_t from, std::uint64_t tag, std::uint64_t ignore,
                                   void* context) {
  const iovec iov{buffer, length};
  return receive_tagged(ep, {.iov = &iov,
                             .desc = &desc,
                             .count = 1,
                             .context = context,
                             .flags = tagged_rx_flags(ep),
                             .from = from,
                             .tagged = true,
                             .tag = tag,
                             .ignore = ignore});
}

}  // namespace

fi_ops_tagged tagged_calls{
    .size = sizeof(fi_ops_tagged),
    .recv = call_recv,
    .recvv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t tag, std::uint64_t ignore, void* context) {
          return receive_tagged(ep, {.iov = iov,
                                     .desc = desc,
                                     .count = count,
                                     .context = context,
                                     .flags = tagged_rx_flags(ep),
                                     .from = from,
                                     .tagged = true,
                                     .tag = tag,
                                     .ignore = ignore});
        },
    .recvmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if (const auto error = check_receive(tagged_end(ep).offer(), flags, kRxOpFlags); error != 0)
        return error;
      return receive_tagged(ep, {.iov = msg->msg_iov,
                                 .desc = msg->desc,
                                 .count = msg->iov_count,
                                 .context = msg->context,
                                 .flags = flags,
                                 .from = msg->addr,
                                 .tagged = true,
                                 .tag = msg->tag,
                                 .ignore = msg->ignore});
    },
    .send = call_send,
    .sendv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t tag, void* context) {
          return send_tagged(ep, {.iov = iov,
                                  .desc = desc,
                                  .count = count,
                                  .context = context,
                                  .flags = tagged_end(ep).tx_flags(),
                                  .to = to,
                                  .tagged = true,
                                  .tag = tag});
        },
    .sendmsg = [](fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) -> ssize_t {
      if ((flags & ~kTxCallFlags) != 0) return -FI_EBADFLAGS;
      return send_tagged(ep, {.iov = msg->msg_iov,
                              .desc = msg->desc,
                              .count = msg->iov_count,
                              .context = msg->context,
                              .flags = flags,
                              .data = msg->data,
                              .to = msg->addr,
                              .tagged = true,
                              .tag = msg->tag});
    },
    .inject = call_inject,
    .senddata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t tag, void* context) {
          return send_one(ep, buffer, length, desc, tagged_end(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                          data, to, tag, context);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t tag) {
          return send_one(ep, buffer, length, nullptr, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA,
                          data, to, tag, nullptr);
        },
};

}  // namespace stp::fi::rdm
