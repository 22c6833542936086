// SPDX-License-Identifier: BSD-3-Clause
// Sends, receives and RDMA.
#include "libst/udapl/core/ep.h"
#include "libst/udapl/front/segments.h"

namespace stp::udapl::front {
namespace {

// Sends and receives.
template <auto kPost>
DAT_RETURN post(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                DAT_COMPLETION_FLAGS flags) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid()) return bad_parameter();
  return to_dat(((*ep).*kPost)(segments.get(), cookie.as_64, static_cast<Flags>(flags)));
}

RmrTriplet to_core(const DAT_RMR_TRIPLET& remote) {
  return {address_in(remote), remote.segment_length, remote.rmr_context};
}

// RDMA write and read.
template <auto kPost>
DAT_RETURN post_rdma(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov,
                     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                     DAT_COMPLETION_FLAGS flags) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid() || remote == nullptr) return bad_parameter();
  return to_dat(
      ((*ep).*kPost)(segments.get(), cookie.as_64, to_core(*remote), static_cast<Flags>(flags)));
}

}  // namespace

void fill_transfer(DAT_PROVIDER& table) {
  table.ep_post_send_func = post<&Ep::post_send>;
  table.ep_post_recv_func = post<&Ep::post_recv>;
  table.ep_post_rdma_write_func = post_rdma<&Ep::post_rdma_write>;
  table.ep_post_rdma_read_func = post_rdma<&Ep::post_rdma_read>;
}

}  // namespace stp::udapl::front
