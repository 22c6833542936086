// SPDX-License-Identifier: BSD-3-Clause
// Endpoints and the memory mapped on them.
#include <algorithm>
#include <cerrno>

#include "stp/engine/impl.h"

namespace stp {
namespace {

bool sensible(const EndpointConfig& c) {
  auto const fits = [](std::uint32_t base, std::uint32_t count) {
    return std::uint64_t{base} + count <= std::uint64_t{1} << 32;
  };
  return c.bufsize >= wire::kMinBufsize && c.bufsize <= wire::kMaxBufsize &&
         c.max_stu >= wire::kMinMaxStu && c.max_stu <= wire::kMaxMaxStu && c.slots >= 1 &&
         c.slots <= kMaxSlots && c.credits >= 1 && c.credits <= kMaxCredits &&
         fits(c.rx_bufx_base, c.rx_bufx_count) && fits(c.tx_bufx_base, c.tx_bufx_count);
}

void apply(Endpoint& endpoint, const EndpointConfig& c) {
  endpoint.config = c;
  endpoint.receive = BufxRange(c.rx_bufx_base, c.rx_bufx_count, c.bufsize);
  endpoint.transmit = BufxRange(c.tx_bufx_base, c.tx_bufx_count, c.bufsize);
}

}  // namespace

int Node::Impl::open_endpoint(const EndpointConfig& wanted, EndpointId& out, std::uint64_t owner) {
  if (!sensible(wanted)) return -EINVAL;
  auto& endpoint = endpoints.add(std::make_unique<Endpoint>());
  endpoint.owner_id = owner;
  endpoint.owner = &owners[owner];
  ++endpoint.owner->endpoints;
  apply(endpoint, wanted);
  out = endpoint.id;
  return 0;
}

int Node::Impl::configure(EndpointId id, const EndpointConfig& wanted) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (!sensible(wanted)) return -EINVAL;
  if (endpoint->vcs > 0 || endpoint->regions > 0 || endpoint->listening || !endpoint->stock.empty())
    return -EBUSY;
  apply(*endpoint, wanted);
  return 0;
}

int Node::Impl::unlisten(EndpointId id) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->listening) listeners.erase(endpoint->uport);
  endpoint->listening = false;
  return 0;
}

int Node::Impl::close_endpoint(EndpointId id) {
  if (auto const error = unlisten(id); error != 0) return error;
  auto* const endpoint = endpoints.find(id);
  if (endpoint->vcs > 0 || endpoint->regions > 0 || !endpoint->stock.empty()) return -EBUSY;
  if (--endpoint->owner->endpoints == 0) owners.erase(endpoint->owner_id);
  endpoints.remove(id);
  return 0;
}

int Node::Impl::map(EndpointId endpoint_id, Direction direction, std::uint32_t base,
                    std::span<const MutableBytes> pieces, RegionId& out) {
  auto* const endpoint = endpoints.find(endpoint_id);
  if (endpoint == nullptr) return -EBADF;
  auto& range = direction == Direction::kReceive ? endpoint->receive : endpoint->transmit;
  auto& region = regions.add(std::make_unique<Region>());
  if (auto const error = range.bind(base, pieces, region.id); error != 0) {
    regions.remove(region.id);
    return error;
  }
  std::size_t bytes = 0;
  for (auto const& piece : pieces) bytes += piece.size();
  region.endpoint = endpoint_id;
  region.direction = direction;
  region.first = base;
  region.count = static_cast<std::uint32_t>(bytes >> endpoint->config.bufsize);
  ++endpoint->regions;
  out = region.id;
  return 0;
}

// protocol: 7.5
int Node::Impl::unmap(RegionId id) {
  auto* const region = regions.find(id);
  if (region == nullptr || region->unmapped) return -EBADF;
  auto* const endpoint = endpoints.find(region->endpoint);
  auto& range = region->direction == Direction::kReceive ? endpoint->receive : endpoint->transmit;
  range.unbind(region->first, region->count);
  mxs.free_if([&](const MxEntry& mx) { return mx.region == id; });
  region->unmapped = true;
  if (region->attached == 0) region_gone(*region);
  return 0;
}

void Node::Impl::region_gone(Region& region) {
  --endpoints.find(region.endpoint)->regions;
  event(Event::Kind::kRegionGone, region.id);
  regions.remove(region.id);
}

int Node::Impl::alloc_mx(RegionId region_id, VcId vc_id, std::uint8_t permissions,
                         std::uint16_t& out) {
  auto const* const region = regions.find(region_id);
  if (region == nullptr || region->unmapped) return -EBADF;
  if (region->direction != Direction::kReceive) return -EINVAL;
  if (vc_id != kNoneId) {
    auto const* const vc = find_vc(vc_id);
    if (vc == nullptr) return -EBADF;
    if (vc->endpoint->id != region->endpoint) return -EINVAL;
  }
  auto const* const endpoint = endpoints.find(region->endpoint);
  auto const mx = mxs.allocate({.range = &endpoint->receive,
                                .first = region->first,
                                .count = region->count,
                                .endpoint = endpoint->id,
                                .vc = vc_id,
                                .region = region_id,
                                .permissions = permissions});
  if (mx < 0) return mx;
  out = static_cast<std::uint16_t>(mx);
  return 0;
}

int Node::Impl::free_mx(EndpointId endpoint, std::uint16_t mx) {
  auto const* const entry = mxs.find(mx);
  if (entry == nullptr || entry->endpoint != endpoint) return -ERANGE;
  mxs.free(mx);
  return 0;
}

}  // namespace stp
