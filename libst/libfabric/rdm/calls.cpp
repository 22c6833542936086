// SPDX-License-Identifier: BSD-3-Clause
// FI_MSG of endpoints of FI_EP_RDM.
#include "libst/libfabric/calls.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {
namespace {

// Of receives that look for a message that has come.
constexpr std::uint64_t kLooks = FI_PEEK | FI_CLAIM | FI_DISCARD;

// 0, or what is wrong with the flags of a receive.
int check_receive(std::uint64_t flags, std::uint64_t known) {
  if ((flags & ~(known | kLooks | FI_MORE)) != 0) return -FI_EBADFLAGS;
  return (flags & FI_DISCARD) != 0 && (flags & (FI_PEEK | FI_CLAIM)) == 0 ? -FI_EBADFLAGS : 0;
}

constexpr std::uint64_t kMessageFlags = kTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

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
      if (const auto error = check_receive(flags, kRdmRxOpFlags); error != 0) return error;
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

// FI_TAGGED of endpoints of FI_EP_RDM.

namespace {

constexpr std::uint64_t kTaggedFlags = kTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

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
      if (const auto error = check_receive(flags, kRxOpFlags); error != 0) return error;
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

// FI_RMA of endpoints of FI_EP_RDM.

namespace {

constexpr std::uint64_t kRmaFlags = kTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

// Both directions: `call` is &Endpoint::write or &Endpoint::read.
template <class Call>
ssize_t transfer(fid_ep* ep, Call call, Request&& request, fi_addr_t to, const Target& target,
                 std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return (endpoint_of(ep).*call)(request, to, target);
  });
}

template <class Call>
ssize_t transfer(fid_ep* ep, Call call, const iovec* iov, void** desc, std::size_t count,
                 Request&& request, fi_addr_t to, const Target& target, std::uint64_t flags) {
  const auto error = read_segments(iov, desc, count, request.segments);
  return error != 0 ? error : transfer(ep, call, std::move(request), to, target, flags);
}

template <class Call>
ssize_t transfer(fid_ep* ep, Call call, const fi_msg_rma& msg, std::uint64_t flags) {
  if ((flags & ~kRmaFlags) != 0) return -FI_EBADFLAGS;
  if (msg.rma_iov_count != 1) return -FI_EINVAL;
  Request request{.segments = {}, .context = msg.context, .data = msg.data};
  const auto error = read_segments(msg.msg_iov, msg.desc, msg.iov_count, request.segments);
  if (error != 0) return error;
  if (msg.rma_iov[0].len != request.segments.length) return -FI_EINVAL;
  return transfer(ep, call, std::move(request), msg.addr,
                  {.address = msg.rma_iov[0].addr, .key = msg.rma_iov[0].key}, flags);
}

}  // namespace

fi_ops_rma rma_calls{
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::read,
                          {.segments = one_segment(buffer, length, desc), .context = context}, from,
                          {address, key}, endpoint_of(ep).tx_flags());
        },
    .readv =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::read, iov, desc, count,
                          {.segments = {}, .context = context}, from, {address, key},
                          endpoint_of(ep).tx_flags());
        },
    .readmsg = [](fid_ep* ep, const fi_msg_rma* msg,
                  std::uint64_t flags) { return transfer(ep, &Endpoint::read, *msg, flags); },
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::write,
                          {.segments = one_segment(buffer, length, desc), .context = context}, to,
                          {address, key}, endpoint_of(ep).tx_flags());
        },
    .writev =
        [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(ep, &Endpoint::write, iov, desc, count,
                          {.segments = {}, .context = context}, to, {address, key},
                          endpoint_of(ep).tx_flags());
        },
    .writemsg = [](fid_ep* ep, const fi_msg_rma* msg,
                   std::uint64_t flags) { return transfer(ep, &Endpoint::write, *msg, flags); },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t address,
           std::uint64_t key) {
          return transfer(ep, &Endpoint::write, {.segments = one_segment(buffer, length, nullptr)},
                          to, {address, key}, FI_INJECT | kUntold);
        },
    .writedata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
          return transfer(
              ep, &Endpoint::write,
              {.segments = one_segment(buffer, length, desc), .context = context, .data = data}, to,
              {address, key}, endpoint_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
           std::uint64_t address, std::uint64_t key) {
          return transfer(ep, &Endpoint::write,
                          {.segments = one_segment(buffer, length, nullptr), .data = data}, to,
                          {address, key}, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

}  // namespace stp::fi::rdm
