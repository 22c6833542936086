// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/mapped_memory.h"

#include <cerrno>
#include <new>

#include "stp/base/assert.h"

namespace stp {

int MappedMemory::map(Endpoint& endpoint, Direction direction, std::uint32_t base,
                      std::span<const MutableBytes> pieces, RegionId& out) {
  auto* const region = regions_.add(std::make_unique<Region>());
  if (region == nullptr) return -ENOSPC;
  auto error = -ENOMEM;
  try {
    error = range_of(endpoint, direction).bind(base, pieces, region->id);
  } catch (const std::bad_alloc&) {
  }
  if (error != 0) {
    regions_.remove(region->id);
    return error;
  }
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  region->endpoint = &endpoint;
  region->direction = direction;
  region->first = base;
  region->count = static_cast<std::uint32_t>(bytes >> endpoint.config.bufsize);
  ++endpoint.regions;
  out = region->id;
  return 0;
}

// protocol: 7.5
int MappedMemory::unmap(RegionId id) {
  auto* const region = regions_.find(id);
  if (region == nullptr || region->unmapped) return -EBADF;
  // Nothing stays bound: no request or frame finds the memory from here on.
  [[maybe_unused]] const auto unbound =
      range_of(*region->endpoint, region->direction).unbind(region->first, region->count, id);
  STP_ASSERT(unbound == region->count, "what a region has is bound until it is unbound");
  region->unmapped = true;
  mxs_.abandon(region->mxs);
  mxs_.tidy(kTidiedAtOnce);
  if (region->attached == 0) end(*region);
  return 0;
}

[[gnu::noinline]] void MappedMemory::end(Region& region) {
  --region.endpoint->regions;
  common_.event(Event::Kind::kRegionGone, region.id);
  regions_.remove(region.id);
}

int MappedMemory::alloc_mx(RegionId region_id, VcId vc_id, std::uint8_t permissions,
                           std::uint16_t& out) {
  auto* const region = regions_.find(region_id);
  if (region == nullptr || region->unmapped) return -EBADF;
  if (region->direction != Direction::kReceive) return -EINVAL;
  Vc* vc = nullptr;
  if (vc_id != kNoneId) {
    vc = vcs_.find(vc_id);
    if (vc == nullptr) return -EBADF;
    if (vc->endpoint != region->endpoint) return -EINVAL;
  }
  const auto mx = mxs_.allocate({.region = region_id,
                                 .first = region->first,
                                 .count = region->count,
                                 .endpoint = region->endpoint->id,
                                 .vc = vc_id,
                                 .permissions = permissions},
                                region->mxs, vc == nullptr ? nullptr : &vc->mxs);
  if (mx < 0) return mx;
  out = static_cast<std::uint16_t>(mx);
  return 0;
}

int MappedMemory::free_mx(EndpointId endpoint, std::uint16_t mx) {
  const auto* const entry = mxs_.find(mx);
  if (entry == nullptr || entry->endpoint != endpoint || !is_live(*entry)) return -ERANGE;
  mxs_.free(mx);
  return 0;
}

// Whether its region and its connection still exist.
bool MappedMemory::is_live(const MxEntry& mx) const {
  const auto* const region = regions_.find(mx.region);
  if (region == nullptr || region->unmapped) return false;
  return mx.vc == kNoneId || vcs_.find(mx.vc) != nullptr;
}

void MappedMemory::attach(RegionId id) {
  auto* const region = regions_.find(id);
  STP_ASSERT(region != nullptr && !region->unmapped, "what is sent from is mapped");
  ++region->attached;
}

bool MappedMemory::detach(RegionId id) {
  auto* const region = regions_.find(id);
  if (region == nullptr || region->attached == 0) return false;
  if (--region->attached == 0 && region->unmapped) end(*region);
  return true;
}

}  // namespace stp
