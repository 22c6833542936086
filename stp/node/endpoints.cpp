// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/endpoints.h"

#include <cerrno>

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

// 0, or a negative errno.
int EndpointTable::check(const EndpointConfig& wanted) const {
  if (!sensible(wanted)) return -EINVAL;
  return wanted.port == 0 || use_.vcs.has(wanted.port) ? 0 : -EADDRNOTAVAIL;
}

int EndpointTable::open(const EndpointConfig& wanted, EndpointId& out, std::uint64_t owner) {
  if (const auto error = check(wanted); error != 0) return error;
  auto* const endpoint = endpoints_.add(std::make_unique<Endpoint>());
  if (endpoint == nullptr) return -ENOSPC;
  endpoint->owner_id = owner;
  endpoint->owner = &owners_[owner];
  ++endpoint->owner->endpoints;
  if (!endpoint->owner->windows)
    endpoint->owner->windows =
        std::make_shared<WindowPurse>(use_.config.windows, owner, use_.pacing.memory_freed());
  apply(*endpoint, wanted);
  out = endpoint->id;
  return 0;
}

int EndpointTable::configure(Endpoint& endpoint, const EndpointConfig& wanted) {
  if (const auto error = check(wanted); error != 0) return error;
  if (endpoint.vcs > 0 || endpoint.regions > 0 || endpoint.listening || !endpoint.stock.empty())
    return -EBUSY;
  apply(endpoint, wanted);
  return 0;
}

int EndpointTable::close(Endpoint& endpoint) {
  STP_ASSERT(!endpoint.listening, "an endpoint ends when no RC finds it any more");
  if (endpoint.vcs > 0 || endpoint.regions > 0 || !endpoint.stock.empty()) return -EBUSY;
  if (--endpoint.owner->endpoints == 0) owners_.erase(endpoint.owner_id);
  endpoints_.remove(endpoint.id);
  return 0;
}

}  // namespace stp
