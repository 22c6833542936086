// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <limits>

#include "libst/service/limits.h"
#include "libst/service/new_entry.h"
#include "libst/service/service_impl.h"
#include "stp/base/assert.h"

namespace stp::service {

struct Service::Impl::Extent {
  std::uint64_t bytes = 0;
};

// Checks whether the region could be mapped, except for the budgets of its user. The caller has set
// `out.bytes`, the length of the region. `mapped`: the bytes that count against the quota.
int Service::Impl::measure(Client& client, const Request& request, std::uint64_t mapped,
                           Extent& out) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (request.direction > static_cast<std::uint32_t>(Direction::kReceive)) return -EINVAL;
  EndpointConfig config;
  if (const auto error = node.endpoint_config(request.endpoint, config); error != 0) return error;
  const auto receive = static_cast<Direction>(request.direction) == Direction::kReceive;
  const auto first = receive ? config.rx_bufx_base : config.tx_bufx_base;
  const auto count = receive ? config.rx_bufx_count : config.tx_bufx_count;
  if (out.bytes == 0) return -EINVAL;
  if (request.base < first) return -ERANGE;
  if (request.base - first + (out.bytes >> config.bufsize) > count) return -ERANGE;
  if (client.use->regions >= quotas.regions) return over_quota("max-regions", quotas.regions);
  if (client.use->mapped_bytes + mapped > quotas.mapped_bytes)
    return over_quota("max-mapped", quotas.mapped_bytes);
  return 0;
}

int Service::claim_region(ClientId id, const Request& request, std::uint64_t bytes,
                          RegionClaim& out, Reply& reply) {
  return impl_->guarded(reply, [&] {
    auto* const client = impl_->client(id);
    if (client == nullptr || client->leaving) return -EBADF;
    Impl::Extent extent;
    const auto pieces = std::min(request.piece_count, kMaxPieces);
    for (const auto& piece : std::span(request.pieces).first(pieces)) {
      if (piece.length > limits::kMostBytes - extent.bytes) return -EINVAL;
      extent.bytes += piece.length;
    }
    if (const auto error = impl_->measure(*client, request, bytes, extent); error != 0)
      return error;
    out.torn = client->torn;
    if (const auto error = impl_->reserve(*client, Resource::kRegions, 1, out.place); error != 0)
      return error;
    if (const auto error = impl_->reserve(*client, Resource::kMappedBytes, bytes, out.bytes);
        error != 0)
      return error;
    return impl_->reserve(*client, Resource::kMappings, request.segment_count, out.mappings);
  });
}

int Service::Impl::map(Client& client, const Request& request, Attachments& attachments,
                       Reply& reply) {
  Extent extent;
  for (const auto piece : attachments.pieces) extent.bytes += piece.size();
  const auto mapped = attachments.keep ? std::max(extent.bytes, attachments.mapped_bytes) : 0;
  if (const auto error = measure(client, request, mapped, extent); error != 0) return error;
  auto& endpoint = client.endpoints.at(request.endpoint);
  const auto direction = static_cast<Direction>(request.direction);
  Region made{.endpoint = request.endpoint,
              .keep = nullptr,
              .mapped_bytes = mapped,
              .direction = direction,
              .base = request.base,
              .bytes = extent.bytes,
              .mxs = {},
              .place = std::move(attachments.place),
              .one = {},
              .counted_bytes = {}};
  if (made.place.amount() == 0)
    if (const auto error = reserve(client, Resource::kRegions, 1, made.place); error != 0)
      return error;
  const auto growth =
      node.table_growth(request.endpoint, direction, request.base, attachments.pieces);
  if (client.use->table_bytes + growth > limits::kTableBytes) {
    exceeded = "the Bufx tables of this program take " + std::to_string(client.use->table_bytes) +
               " of at most " + std::to_string(limits::kTableBytes) + " bytes: map fewer buffers";
    return -EDQUOT;
  }
  Reservation tables;
  if (const auto error = reserve(client, Resource::kTableBytes, growth, tables); error != 0)
    return error;

  NewEntry entry(client.regions, std::move(made));
  NewEntry owner(region_owner, client.id);
  RegionId id = kNoneId;
  if (const auto error =
          node.map(request.endpoint, direction, request.base, attachments.pieces, id);
      error != 0)
    return error;
  auto& region = entry.enter(id);
  owner.enter(id);
  region.keep = std::move(attachments.keep);
  client.table_bytes += growth;
  endpoint.tables.join(std::move(tables));
  settle_tables(client, request.endpoint, endpoint);
  client.mapped_bytes += mapped;
  ++endpoint.regions;
  region.one = {client.use->regions, 1};
  region.counted_bytes = {client.use->mapped_bytes, mapped};
  reply.region = id;
  return 0;
}

// Reduces the reservation for the endpoint's Bufx tables to what they take.
void Service::Impl::settle_tables(Client& client, EndpointId id, Endpoint& endpoint) {
  STP_ASSERT(endpoint.tables.amount() <= client.table_bytes,
             "the tables of an endpoint are counted with its client");
  client.table_bytes -= endpoint.tables.amount();
  endpoint.tables.shrink(node.table_bytes(id));
  client.table_bytes += endpoint.tables.amount();
  endpoint.counted_tables = {client.use->table_bytes, endpoint.tables.amount()};
}

bool Service::Impl::Windows::hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) {
  const auto id = static_cast<ClientId>(owner);
  const auto at = held.find(id);
  const auto has = at == held.end() ? 0 : at->second.amount();
  if (bytes <= before) {
    STP_ASSERT(before - bytes <= has, "what a purse gives back its owner holds");
    const auto left = has - std::min<std::uint64_t>(has, before - bytes);
    if (left != 0)
      at->second.shrink(left);
    else if (at != held.end())
      held.erase(at);
    return true;
  }
  const auto* const client = service.client(id);
  Reservation more;
  if (client == nullptr || !client->account.reserve(Resource::kWindowBytes, bytes - before, more))
    return false;
  held[id].join(std::move(more));
  return true;
}

// The region's id stays valid until the result is 0, so a client that got -EINPROGRESS can repeat
// the request.
int Service::Impl::unmap(Client& client, RegionId id) {
  auto* const region = client.region(id);
  if (region == nullptr || client.endpoint(region->endpoint) == nullptr) return -EBADF;
  start_unmap(id, *region);
  handle_events();
  if (region->state != Region::State::kGone) return -EINPROGRESS;
  clean_up();
  forget_region(client, id);
  return 0;
}

// The region's Mx stop working at once. They are forgotten when the region has gone.
void Service::Impl::start_unmap(RegionId id, Region& region) {
  if (region.state != Region::State::kBound) return;
  region.state = Region::State::kUnbinding;
  node.unmap(id);
}

int Service::Impl::alloc_mx(Client& client, const Request& request, Reply& reply) {
  constexpr std::uint32_t kAll = permit::kData | permit::kGet | permit::kFetchOp;
  auto* const region = client.region(request.region);
  if (region == nullptr || region->state != Region::State::kBound) return -EBADF;
  if (request.permissions == 0 || (request.permissions & ~kAll) != 0) return -EINVAL;
  Channel* channel = nullptr;
  if (request.vc != kNoneId) {
    channel = client.connection(request.vc);
    if (channel == nullptr) return -EBADF;
    if (channel->endpoint != region->endpoint) return -EINVAL;
  }
  if (client.use->mxs >= quotas.mxs) return over_quota("max-mx", quotas.mxs);
  MxUse use{.region = request.region, .vc = request.vc, .place = {}, .one = {}};
  if (const auto error = reserve(client, Resource::kMx, 1, use.place); error != 0) return error;
  std::uint16_t mx = 0;
  if (const auto error = node.alloc_mx(request.region, request.vc,
                                       static_cast<std::uint8_t>(request.permissions), mx);
      error != 0)
    return error;
  forget_mx(client, mx);  // an earlier Mx of this number, which has ended and waits in `leftovers`
  try {
    use.one = {client.use->mxs, 1};
    client.mxs.emplace(mx, std::move(use));
    region->mxs.insert(mx);
    if (channel != nullptr) channel->mxs.insert(mx);
  } catch (...) {  // no memory
    node.free_mx(region->endpoint, mx);
    forget_mx(client, mx);
    throw;
  }
  reply.mx = mx;
  return 0;
}

int Service::Impl::free_mx(Client& client, const Request& request) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  if (request.mx > std::numeric_limits<std::uint16_t>::max()) return -ERANGE;
  const auto mx = static_cast<std::uint16_t>(request.mx);
  if (const auto error = node.free_mx(request.endpoint, mx); error != 0) return error;
  forget_mx(client, mx);
  return 0;
}

}  // namespace stp::service
