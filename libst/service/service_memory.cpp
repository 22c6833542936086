// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <limits>

#include "libst/service/limits.h"
#include "libst/service/service_impl.h"

namespace stp::service {
namespace {

struct Extent {
  std::uint64_t bytes = 0;
  std::uint64_t reach = 0;  // how far into its range it goes, in Bufx entries
};

int measure(const EndpointConfig& config, Direction direction, std::uint32_t base,
            std::span<const MutableBytes> pieces, Extent& out) {
  auto const receive = direction == Direction::kReceive;
  auto const first = receive ? config.rx_bufx_base : config.tx_bufx_base;
  auto const count = receive ? config.rx_bufx_count : config.tx_bufx_count;
  for (auto const piece : pieces) out.bytes += piece.size();
  if (out.bytes == 0) return -EINVAL;
  if (base < first) return -ERANGE;
  out.reach = base - first + (out.bytes >> config.bufsize);
  return out.reach <= count ? 0 : -ERANGE;
}

}  // namespace

int Service::Impl::map(Client& client, const Request& request, Attachments& attachments,
                       Reply& reply) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (request.direction > static_cast<std::uint32_t>(Direction::kReceive)) return -EINVAL;
  auto const direction = static_cast<Direction>(request.direction);
  EndpointConfig config;
  Extent extent;
  if (auto const error = node.endpoint_config(request.endpoint, config); error != 0) return error;
  if (auto const error = measure(config, direction, request.base, attachments.pieces, extent);
      error != 0)
    return error;

  auto& reach = endpoint->bufx_reach[request.direction];
  auto const more_entries = std::max(extent.reach, reach) - reach;
  auto const mapped = attachments.keep ? extent.bytes : 0;
  if (client.regions.size() >= quotas.regions) return over_quota("max-regions");
  if (client.mapped_bytes + mapped > quotas.mapped_bytes) return over_quota("max-mapped");
  if (client.bufx_entries + more_entries > limits::kBufxEntries) return -EDQUOT;

  RegionId id = kNoneId;
  if (auto const error =
          node.map(request.endpoint, direction, request.base, attachments.pieces, id);
      error != 0)
    return error;
  reach += more_entries;
  client.bufx_entries += more_entries;
  client.mapped_bytes += mapped;
  ++endpoint->regions;
  client.regions.emplace(id, Region{.state = Region::State::kBound,
                                    .endpoint = request.endpoint,
                                    .keep = std::move(attachments.keep),
                                    .mapped_bytes = mapped,
                                    .direction = direction,
                                    .base = request.base,
                                    .bytes = extent.bytes});
  region_owner.emplace(id, client.id);
  reply.region = id;
  return 0;
}

// Known until the answer is 0: one who asked too early can ask again.
int Service::Impl::unmap(Client& client, RegionId id) {
  auto* const region = client.region(id);
  if (region == nullptr || client.endpoint(region->endpoint) == nullptr) return -EBADF;
  start_unmap(client, id, *region);
  handle_events();
  if (region->state != Region::State::kGone) return -EINPROGRESS;
  client.regions.erase(id);
  return 0;
}

void Service::Impl::start_unmap(Client& client, RegionId id, Region& region) {
  if (region.state != Region::State::kBound) return;
  region.state = Region::State::kUnbinding;
  std::erase_if(client.mxs, [id](auto& mx) { return mx.second.region == id; });
  node.unmap(id);
}

int Service::Impl::alloc_mx(Client& client, const Request& request, Reply& reply) {
  constexpr std::uint32_t kAll = permit::kData | permit::kGet | permit::kFetchOp;
  auto const* const region = client.region(request.region);
  if (region == nullptr || region->state != Region::State::kBound) return -EBADF;
  if (request.permissions == 0 || (request.permissions & ~kAll) != 0) return -EINVAL;
  if (request.vc != kNoneId) {
    auto const* const channel = client.connection(request.vc);
    if (channel == nullptr) return -EBADF;
    if (channel->endpoint != region->endpoint) return -EINVAL;
  }
  if (client.mxs.size() >= quotas.mxs) return over_quota("max-mx");
  std::uint16_t mx = 0;
  if (auto const error = node.alloc_mx(request.region, request.vc,
                                       static_cast<std::uint8_t>(request.permissions), mx);
      error != 0)
    return error;
  client.mxs.insert_or_assign(mx, MxUse{.region = request.region, .vc = request.vc});
  reply.mx = mx;
  return 0;
}

int Service::Impl::free_mx(Client& client, const Request& request) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  if (request.mx > std::numeric_limits<std::uint16_t>::max()) return -ERANGE;
  auto const mx = static_cast<std::uint16_t>(request.mx);
  if (auto const error = node.free_mx(request.endpoint, mx); error != 0) return error;
  client.mxs.erase(mx);
  return 0;
}

}  // namespace stp::service
