// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/access.h"

#include <cerrno>

#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

std::uint8_t permissions(unsigned access) {
  unsigned permissions = 0;
  if ((access & STM_REMOTE_READ) != 0) permissions |= permit::kGet;
  if ((access & STM_REMOTE_WRITE) != 0) permissions |= permit::kData;
  if ((access & STM_REMOTE_ATOMIC) != 0) permissions |= permit::kFetchOp;
  return static_cast<std::uint8_t>(permissions);
}

}  // namespace

int Access::landing(EndpointId endpoint, Landing& out) {
  const auto region = memory_->receive_region(endpoint);
  if (revoked_ || region == kNoneId) return -EACCES;
  auto known = mxs_.find(endpoint);
  if (known == mxs_.end()) {
    std::uint16_t mx = 0;
    if (const auto error = domain()->alloc_mx(region, permissions(terms_.access), mx); error != 0)
      return error;
    known = mxs_.emplace(endpoint, mx).first;
  }
  memory_->exposed = true;
  out = {known->second, memory_->at(terms_.bytes.data()), terms_.bytes.size()};
  return 0;
}

void Access::revoke() {
  if (revoked_) return;
  revoked_ = true;
  // From here on the link refuses access to these Mx. revoke() below informs the peers.
  for (const auto& [endpoint, mx] : mxs_) domain()->free_mx(endpoint, mx);
  domain()->remove_access(key_);
  for (const auto& connection : domain()->connections()) connection->revoke(*this);
  STP_ASSERT(memory_->uses > 0 && memory_->regions > 0, "a region's memory is in use");
  --memory_->uses;
  --memory_->regions;
}

}  // namespace stp::managed
