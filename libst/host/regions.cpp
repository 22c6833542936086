// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/regions.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <span>

#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "stp/base/assert.h"

namespace stp::host {

// ---- mapping

// Checks whether the region could be mapped, except for the budgets of its user. `bytes`: the
// length of the region. `mapped`: the bytes that count against the quota.
int Regions::check(Client& client, const ask::Map& request, std::uint64_t bytes,
                   std::uint64_t mapped) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (request.direction > static_cast<std::uint32_t>(Direction::kReceive)) return -EINVAL;
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(request.endpoint, config); error != 0) return error;
  const auto receive = static_cast<Direction>(request.direction) == Direction::kReceive;
  const auto first = receive ? config.rx_bufx_base : config.tx_bufx_base;
  const auto count = receive ? config.rx_bufx_count : config.tx_bufx_count;
  if (bytes == 0) return -EINVAL;
  if (request.base < first) return -ERANGE;
  if (request.base - first + (bytes >> config.bufsize) > count) return -ERANGE;
  if (const auto error = allow_.within(*client.use, &ProgramUse::regions, 1); error != 0)
    return error;
  return allow_.within(*client.use, &ProgramUse::mapped_bytes, mapped);
}

int Regions::claim(Client& client, const ask::Map& request, std::uint64_t bytes, std::size_t files,
                   RegionClaim& out) {
  std::uint64_t length = 0;
  for (const auto& piece :
       std::span(request.pieces).first(std::min(request.piece_count, ipc::kMaxPieces))) {
    if (piece.length > limits::kMostBytes - length) return -EINVAL;
    length += piece.length;
  }
  if (const auto error = check(client, request, length, bytes); error != 0) return error;
  out.torn = client.torn;
  out.payer = allow_.payer(client.identity.uid).account;
  if (const auto error = allow_.reserve(client.payer, Resource::kRegions, 1, out.of_region);
      error != 0)
    return error;
  if (const auto error = allow_.reserve(client.payer, Resource::kMappedBytes, bytes, out.of_memory);
      error != 0)
    return error;
  if (const auto error = allow_.reserve(client.payer, Resource::kFiles, files, out.of_request);
      error != 0)
    return error;
  // A mapping of each file, and one of each segment.
  return allow_.reserve(client.payer, Resource::kMappings, request.segment_count + files,
                        out.of_memory);
}

int Regions::map(Client& client, const ask::Map& request, Attachments& attachments,
                 ask::Map::Reply& reply) {
  std::uint64_t length = 0;
  for (const auto piece : attachments.pieces) length += piece.size();
  const auto mapped = attachments.keep ? std::max(length, attachments.mapped_bytes) : 0;
  if (const auto error = check(client, request, length, mapped); error != 0) return error;
  NewEntry entry(client.regions);
  NewEntry owner(owners_, client.id);
  auto& made = entry.value();
  made.endpoint = request.endpoint;
  made.direction = static_cast<Direction>(request.direction);
  made.base = request.base;
  made.bytes = length;
  made.held = std::move(attachments.of_region);
  Reservation tables;
  if (const auto error = reserve(client, attachments, made, tables); error != 0) return error;
  RegionId id = kNoneId;
  if (const auto error =
          node_.map(made.endpoint, made.direction, made.base, attachments.pieces, id);
      error != 0)
    return error;
  owner.enter(id);
  auto& region = entry.enter(id);
  region.keep = std::move(attachments.keep);
  region.one = {client.use->regions, 1};
  region.counted_bytes = {client.use->mapped_bytes, mapped};
  auto& endpoint = client.endpoints.at(request.endpoint);
  ++endpoint.regions;
  endpoint.held.join(std::move(tables));
  settle_tables(client, request.endpoint, endpoint);
  reply.region = id;
  return 0;
}

// Reserves the place of the region, unless claim() did, and what the Bufx tables grow.
int Regions::reserve(const Client& client, const Attachments& attachments, Region& made,
                     Reservation& tables) {
  if (made.held.amount(Resource::kRegions) == 0)
    if (const auto error = allow_.reserve(client.payer, Resource::kRegions, 1, made.held);
        error != 0)
      return error;
  const auto growth =
      node_.table_growth(made.endpoint, made.direction, made.base, attachments.pieces);
  if (const auto error = allow_.within(*client.use, &ProgramUse::table_bytes, growth); error != 0)
    return error;
  return allow_.reserve(client.payer, Resource::kTableBytes, growth, tables);
}

// Reduces the reservation for the endpoint's Bufx tables to what they take.
void Regions::settle_tables(Client& client, EndpointId id, Endpoint& endpoint) {
  endpoint.held.shrink(Resource::kTableBytes, node_.table_bytes(id));
  endpoint.counted_tables = {client.use->table_bytes, endpoint.held.amount(Resource::kTableBytes)};
}

// ---- unmapping

void Regions::start_unmap(RegionId id, Region& region) {
  if (region.state != RegionState::kBound) return;
  region.state.must(RegionEvent::kUnmap);
  node_.unmap(id);
}

EndpointId Regions::gone(Client& owner, RegionId id) {
  owners_.erase(id);
  auto& region = owner.regions.at(id);
  const auto of = region.endpoint;
  region.state.must(RegionEvent::kGone);
  region.keep.reset();
  region.counted_bytes.reset();
  if (owner.mxs.count_of_region(id) != 0) leftovers_.push_back({.client = owner.id, .region = id});
  auto& endpoint = owner.endpoints.at(of);
  STP_ASSERT(endpoint.regions > 0, "a region is counted with its endpoint");
  --endpoint.regions;
  settle_tables(owner, of, endpoint);
  if (owner.leaving || endpoint.ending)
    owner.regions.erase(id);
  else
    endpoint.gone.insert(id);
  return of;
}

void Regions::forget(Client& client, RegionId id) {
  const auto at = client.regions.find(id);
  if (at == client.regions.end()) return;
  STP_ASSERT(at->second.state == RegionState::kGone, "a region is forgotten once it has gone");
  if (const auto of = client.endpoints.find(at->second.endpoint); of != client.endpoints.end())
    of->second.gone.erase(id);
  client.regions.erase(at);
}

ClientId Regions::owner_of(RegionId id) const {
  const auto at = owners_.find(id);
  return at == owners_.end() ? 0 : at->second;
}

std::optional<std::pair<RegionId, ClientId>> Regions::after(RegionId id) const {
  const auto at = owners_.upper_bound(id);
  if (at == owners_.end()) return std::nullopt;
  return *at;
}

int Regions::settle(Client& client, RegionId id) const {
  const auto* const region = client.region(id);
  if (region == nullptr || region->state != RegionState::kBound) return -EBADF;
  return node_.is_read(id) ? -EINPROGRESS : 0;
}

// ---- Mx

int Regions::alloc_mx(Client& client, const ask::AllocMx& request, ask::AllocMx::Reply& reply) {
  constexpr std::uint32_t kAll = permit::kData | permit::kGet | permit::kFetchOp;
  auto* const region = client.region(request.region);
  if (region == nullptr || region->state != RegionState::kBound) return -EBADF;
  if (request.permissions == 0 || (request.permissions & ~kAll) != 0) return -EINVAL;
  if (request.vc != kNoneId) {
    const auto* const channel = client.channels.of(request.vc);
    if (channel == nullptr) return -EBADF;
    if (channel->endpoint != region->endpoint) return -EINVAL;
  }
  if (const auto error = allow_.within(*client.use, &ProgramUse::mxs, 1); error != 0) return error;
  MxRecords::Record record{.region = request.region, .vc = request.vc, .held = {}, .one = {}};
  if (const auto error = allow_.reserve(client.payer, Resource::kMx, 1, record.held); error != 0)
    return error;
  std::uint16_t mx = 0;
  if (const auto error = node_.alloc_mx(request.region, request.vc,
                                        static_cast<std::uint8_t>(request.permissions), mx);
      error != 0)
    return error;
  record.one = {client.use->mxs, 1};
  try {
    client.mxs.add(mx, std::move(record));
  } catch (...) {  // no memory
    node_.free_mx(region->endpoint, mx);
    throw;
  }
  reply.mx = mx;
  return 0;
}

int Regions::free_mx(Client& client, const ask::FreeMx& request) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  if (request.mx > std::numeric_limits<std::uint16_t>::max()) return -ERANGE;
  const auto mx = static_cast<std::uint16_t>(request.mx);
  if (const auto error = node_.free_mx(request.endpoint, mx); error != 0) return error;
  client.mxs.remove(mx);
  return 0;
}

}  // namespace stp::host
