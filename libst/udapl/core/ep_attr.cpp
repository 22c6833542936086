// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ep_attr.h"

#include "libst/udapl/core/iov.h"

namespace stp::udapl {
namespace {

bool in(int value, int most) {
  return value >= 0 && value <= most;
}

}  // namespace

bool is_valid(const EpAttr& a) {
  constexpr Flags kRecv = kSolicitedWait | kUnsignalled | kEvdThreshold;
  constexpr Flags kRequest = kUnsignalled | kEvdThreshold;
  const auto one = [](Flags flags) { return (flags & (flags - 1)) == 0; };
  return a.max_message_size <= kMaxMessage && a.max_rdma_size <= kMaxMessage &&
         (a.recv_flags & ~kRecv) == 0 && (a.request_flags & ~kRequest) == 0 && one(a.recv_flags) &&
         one(a.request_flags) && in(a.max_recv_dtos, kMaxDtos) &&
         in(a.max_request_dtos, kMaxDtos) && in(a.max_recv_iov, kMaxIov) &&
         in(a.max_request_iov, kMaxIov) && in(a.max_rdma_read_in, kMaxReads) &&
         in(a.max_rdma_read_out, kMaxReads) && in(a.max_rdma_read_iov, kMaxIov) &&
         in(a.max_rdma_write_iov, kMaxIov);
}

}  // namespace stp::udapl
