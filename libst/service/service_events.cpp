// SPDX-License-Identifier: BSD-3-Clause
// Events of the Node, passed to whom they concern. The client may have gone meanwhile.
#include <new>

#include "libst/service/service_impl.h"
#include "stp/base/assert.h"

namespace stp::service {

bool Service::Impl::handle_events() {
  constexpr int kAtOnce = 512;
  Event event{};
  int handled = 0;
  for (; handled < kAtOnce && node.next_event(event); ++handled) {
    work::count("events of a Node");
    handle_event(event);
  }
  return wakes.go_on() || handled != 0;
}

void Service::Impl::handle_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kNews:
      if (const auto* const owner = clients.find(client_in(event.cookie)); owner != nullptr)
        owner->tell_news(bell_in(event.cookie));
      return;
    case Event::Kind::kWake:
      if (auto* const owner = clients.find(client_in(event.cookie)); owner != nullptr)
        wakes.channel(*owner, bell_in(event.cookie));
      return;
    case Event::Kind::kAcceptReady:
      return accept_ready(event.id);
    case Event::Kind::kStockLow:
      return stock_low(event.id);
    case Event::Kind::kVcOver:
      return vc_over(event.cookie);
    case Event::Kind::kVcGone:
      return vc_gone(event.id, event.cookie);
    case Event::Kind::kRegionGone:
      return region_gone(event.id);
  }
}

void Service::Impl::accept_ready(EndpointId id) {
  const auto owner = endpoints.owner_of(id);
  if (owner == 0) return;
  STP_ASSERT(clients.find(owner) != nullptr, "an endpoint is some client's");
  auto& client = *clients.find(owner);
  client.page().accepts.fetch_add(1);
  wakes.page(client);
}

// Channels of connections that wait to be accepted count as stock, so normally there is nothing to
// do. This refills the stock of a listener for which it could not be filled earlier.
void Service::Impl::stock_low(EndpointId id) {
  const auto owner = endpoints.owner_of(id);
  if (owner == 0) return;
  STP_ASSERT(clients.find(owner) != nullptr, "an endpoint is some client's");
  auto& client = *clients.find(owner);
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr || client.leaving) return;
  try {
    connections.restock(client, id, *endpoint);
  } catch (const std::bad_alloc&) {  // as if the quota were used up: fewer connections can wait
  }
}

void Service::Impl::vc_over(std::uint64_t cookie) {
  auto* const owner = clients.find(client_in(cookie));
  if (owner == nullptr) return;
  owner->tell_news(bell_in(cookie));
  wakes.page(*owner);
}

void Service::Impl::vc_gone(VcId vc, std::uint64_t cookie) {
  auto* const owner = clients.find(client_in(cookie));
  if (owner == nullptr || owner->channels.at(bell_in(cookie)) == nullptr) return;
  const auto endpoint = connections.gone(*owner, vc, bell_in(cookie));
  if (endpoint == kNoneId) return;
  endpoints.erase_if_ended(*owner, endpoint);
  clients.forget_if_empty(*owner);
}

void Service::Impl::region_gone(RegionId id) {
  const auto owner = regions.owner_of(id);
  if (owner == 0) return;
  STP_ASSERT(clients.find(owner) != nullptr, "a region is some client's");
  auto& client = *clients.find(owner);
  endpoints.erase_if_ended(client, regions.gone(client, id));
  clients.forget_if_empty(client);
}

}  // namespace stp::service
