// SPDX-License-Identifier: BSD-3-Clause
// Endpoints and the memory mapped on them.
#include <algorithm>
#include <cerrno>
#include <new>

#include "stp/base/assert.h"
#include "stp/node/impl.h"

namespace stp {
namespace {

bool sensible(const EndpointConfig& c) {
  const auto fits = [](std::uint32_t base, std::uint32_t count) {
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
  if (!has_port(wanted)) return -EADDRNOTAVAIL;
  auto* const endpoint = endpoints.add(std::make_unique<Endpoint>());
  if (endpoint == nullptr) return -ENOSPC;
  endpoint->owner_id = owner;
  endpoint->owner = &owners[owner];
  ++endpoint->owner->endpoints;
  if (!endpoint->owner->windows)
    endpoint->owner->windows =
        std::make_shared<WindowPurse>(config.windows, owner, pacing.memory_freed());
  apply(*endpoint, wanted);
  out = endpoint->id;
  return 0;
}

int Node::Impl::configure(EndpointId id, const EndpointConfig& wanted) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (!sensible(wanted)) return -EINVAL;
  if (!has_port(wanted)) return -EADDRNOTAVAIL;
  if (endpoint->vcs > 0 || endpoint->regions > 0 || endpoint->listening || !endpoint->stock.empty())
    return -EBUSY;
  apply(*endpoint, wanted);
  return 0;
}

int Node::Impl::unlisten(EndpointId id) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->listening) stop_listening(*endpoint);
  return 0;
}

void Node::Impl::stop_listening(Endpoint& endpoint) {
  STP_ASSERT(endpoint.listening && listeners.contains(endpoint.uport),
             "who stops to listen is one of the listeners");
  listeners.erase(endpoint.uport);
  if (config.shards != nullptr) config.shards->unlisten(endpoint.uport, config.shard);
  endpoint.listening = false;
}

int Node::Impl::close_endpoint(EndpointId id) {
  if (const auto error = unlisten(id); error != 0) return error;
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
  auto* const region = regions.add(std::make_unique<Region>());
  if (region == nullptr) return -ENOSPC;
  auto error = -ENOMEM;
  try {
    error = range_of(*endpoint, direction).bind(base, pieces, region->id);
  } catch (const std::bad_alloc&) {
  }
  if (error != 0) {
    regions.remove(region->id);
    return error;
  }
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  region->endpoint = endpoint_id;
  region->direction = direction;
  region->first = base;
  region->count = static_cast<std::uint32_t>(bytes >> endpoint->config.bufsize);
  ++endpoint->regions;
  out = region->id;
  return 0;
}

BufxRange& Node::Impl::range_of(Endpoint& endpoint, Direction direction) {
  return direction == Direction::kReceive ? endpoint.receive : endpoint.transmit;
}

// protocol: 7.5
int Node::Impl::unmap(RegionId id) {
  auto* const region = regions.find(id);
  if (region == nullptr || region->unmapped) return -EBADF;
  auto* const endpoint = endpoints.find(region->endpoint);
  // Nothing stays bound: no request or frame finds the memory from here on.
  [[maybe_unused]] const auto unbound =
      range_of(*endpoint, region->direction).unbind(region->first, region->count, id);
  STP_ASSERT(unbound == region->count, "what a region has is bound until it is unbound");
  region->unmapped = true;
  mxs.abandon(region->mxs);
  mxs.tidy(kTidiedAtOnce);
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
  auto* const region = regions.find(region_id);
  if (region == nullptr || region->unmapped) return -EBADF;
  if (region->direction != Direction::kReceive) return -EINVAL;
  Vc* vc = nullptr;
  if (vc_id != kNoneId) {
    vc = find_vc(vc_id);
    if (vc == nullptr) return -EBADF;
    if (vc->endpoint->id != region->endpoint) return -EINVAL;
  }
  const auto mx = mxs.allocate({.region = region_id,
                                .first = region->first,
                                .count = region->count,
                                .endpoint = region->endpoint,
                                .vc = vc_id,
                                .permissions = permissions},
                               region->mxs, vc == nullptr ? nullptr : &vc->mxs);
  if (mx < 0) return mx;
  out = static_cast<std::uint16_t>(mx);
  return 0;
}

int Node::Impl::free_mx(EndpointId endpoint, std::uint16_t mx) {
  const auto* const entry = mxs.find(mx);
  if (entry == nullptr || entry->endpoint != endpoint || !is_live(*entry)) return -ERANGE;
  mxs.free(mx);
  return 0;
}

// Whether its region and its connection still exist.
bool Node::Impl::is_live(const MxEntry& mx) const {
  const auto* const region = regions.find(mx.region);
  if (region == nullptr || region->unmapped) return false;
  return mx.vc == kNoneId || find_vc(mx.vc) != nullptr;
}

}  // namespace stp
