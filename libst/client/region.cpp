// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/region.h"

#include "libst/client/wait.h"

namespace stp::client {

int Region::allocate_mx(VcId vc, std::uint16_t& out) {
  auto request = request_for(RequestKind::kAllocMx);
  Reply reply{};
  request.region = id_;
  request.vc = vc;
  // All rights: the CTS or MRA that the user sends decides what the peer may do.
  request.permissions = permit::kData | permit::kGet | permit::kFetchOp;
  if (const auto error = endpoint_->backend().exchange(request, reply); error != 0) return error;
  out = static_cast<std::uint16_t>(reply.mx);
  endpoint_->mappings().add_mx(out, id_, vc);
  return 0;
}

int Region::unmap() {
  constexpr Time kInterval = 100 * kMicrosecond;
  auto& backend = endpoint_->backend();
  endpoint_->forget(handle_);
  endpoint_->mappings().remove(id_);
  auto request = request_for(RequestKind::kUnmap);
  Reply reply{};
  request.region = id_;
  for (;;) {
    const auto error = backend.exchange(request, reply);
    if (error != -EINPROGRESS) return error;
    pause(backend, kInterval);
  }
}

}  // namespace stp::client
