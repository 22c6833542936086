// SPDX-License-Identifier: BSD-3-Clause
// FI_RMA of endpoints of FI_EP_RDM.
#include "libst/libfabric/calls.h"
#include "libst/libfabric/rdm/endpoint.h"

namespace stp::fi::rdm {
namespace {

constexpr std::uint64_t kRmaFlags = kRdmTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

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
