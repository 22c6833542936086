// SPDX-License-Identifier: BSD-3-Clause
#include "libst/os/futex.h"
#include "libst/service/service_impl.h"
#include "stp/base/assert.h"

namespace stp::service {

// Handles at most kAtOnce events. Returns true if there were any; more may be left.
bool Service::Impl::handle_events() {
  constexpr int kAtOnce = 512;
  Event event{};
  int handled = 0;
  for (; handled < kAtOnce && node.next_event(event); ++handled) {
    work::count("events of a Node");
    handle_event(event);
  }
  return handled != 0;
}

void Service::Impl::handle_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kNews:
      return ring_news(event.cookie);
    case Event::Kind::kWake:
      return wake_channel(event.cookie);
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

void Service::Impl::ring_news(std::uint64_t cookie) {
  auto* const owner = client(static_cast<ClientId>(cookie >> 32));
  if (owner == nullptr) return;
  const auto number = static_cast<Bell>(cookie);
  const auto* const channel = owner->channel(number);
  if (channel != nullptr && channel->control().gathered.load(std::memory_order_relaxed) != 0)
    owner->page().news.ring(number);
}

void Service::Impl::wake_channel(std::uint64_t cookie) {
  auto* const owner = client(static_cast<ClientId>(cookie >> 32));
  if (owner == nullptr) return;
  const auto* const channel = owner->channel(static_cast<Bell>(cookie));
  if (channel != nullptr) wake_user(*owner, *channel);
}

void Service::Impl::wake_user(const Client& owner, const Channel& channel) {
  auto& control = channel.control();
  if (control.gathered.load(std::memory_order_relaxed) != 0) return wake_page(owner.page());
  futex_wake(control.wake);
}

void Service::Impl::wake_page(ClientPage& page) {
  // Sequentially consistent on both sides. The client adds itself to `sleepers`, then reads the
  // word: so it sees the new value, or this side sees a sleeper.
  page.events.fetch_add(1);
  if (page.sleepers.load() != 0) futex_wake(page.events);
}

void Service::Impl::accept_ready(EndpointId id) {
  const auto at = endpoint_owner.find(id);
  if (at == endpoint_owner.end()) return;
  STP_ASSERT(client(at->second) != nullptr, "an endpoint is some client's");
  auto& page = client(at->second)->page();
  page.accepts.fetch_add(1);
  wake_page(page);
}

void Service::Impl::vc_over(std::uint64_t cookie) {
  ring_news(cookie);
  if (auto* const owner = client(static_cast<ClientId>(cookie >> 32)); owner != nullptr)
    wake_page(owner->page());
}

// Channels of connections that wait to be accepted count as stock, so normally there is nothing to
// do. This refills the stock of a listener for which it could not be filled earlier.
void Service::Impl::stock_low(EndpointId id) {
  const auto at = endpoint_owner.find(id);
  if (at == endpoint_owner.end()) return;
  STP_ASSERT(client(at->second) != nullptr, "an endpoint is some client's");
  auto& owner = *client(at->second);
  auto* const endpoint = owner.endpoint(id);
  if (endpoint == nullptr || owner.leaving) return;
  try {
    restock(owner, id, *endpoint);
  } catch (const std::bad_alloc&) {  // as if the quota were used up: fewer connections can wait
  }
}

void Service::Impl::vc_gone(VcId vc, std::uint64_t cookie) {
  auto* const owner = client(static_cast<ClientId>(cookie >> 32));
  const auto number = static_cast<Bell>(cookie);
  if (owner == nullptr || owner->channel(number) == nullptr) return;
  auto& channel = *owner->channel(number);
  STP_ASSERT(channel.vc == kNoneId || channel.vc == vc, "a channel has one connection");
  const auto id = channel.endpoint;
  auto& endpoint = owner->endpoints.at(id);
  if (channel.vc == kNoneId && !endpoint.ending) {
    // The client has never seen this channel, so the next connection can use it. The Node lays it
    // out anew, and ignores what its rings still hold.
    stock(*owner, id, endpoint, number);
    return;
  }
  STP_ASSERT(channel.vc != kNoneId || endpoint.unaccepted > 0,
             "a connection that nobody has accepted was counted");
  if (channel.vc == kNoneId) --endpoint.unaccepted;
  set_closing(*owner, channel);
  owner->vcs.erase(vc);
  if (!channel.mxs.empty())
    forget_later({.client = owner->id, .vc = vc, .mxs = std::move(channel.mxs)});
  // The Node has written the channel's last state: wakes the threads that sleep on it.
  ring_news(cookie);
  wake_user(*owner, channel);
  release_channel(*owner, number);
  erase_if_ended(*owner, id);
  forget_if_empty(*owner);
}

void Service::Impl::region_gone(RegionId id) {
  const auto at = region_owner.find(id);
  if (at == region_owner.end()) return;
  STP_ASSERT(client(at->second) != nullptr, "a region is some client's");
  auto& owner = *client(at->second);
  region_owner.erase(at);
  auto& region = owner.regions.at(id);
  STP_ASSERT(region.state == Region::State::kUnbinding,
             "a region goes once, and is unmapped before");
  STP_ASSERT(region.mapped_bytes <= owner.mapped_bytes, "a region's memory is counted");
  const auto endpoint = region.endpoint;
  region.state = Region::State::kGone;
  region.keep.reset();
  owner.mapped_bytes -= region.mapped_bytes;
  region.counted_bytes.reset();
  if (!region.mxs.empty())
    forget_later({.client = owner.id, .region = id, .mxs = std::move(region.mxs)});
  region.mxs.clear();
  auto& of = owner.endpoints.at(endpoint);
  STP_ASSERT(of.regions > 0, "a region is counted with its endpoint");
  --of.regions;
  settle_tables(owner, endpoint, of);
  if (owner.leaving || of.ending)
    owner.regions.erase(id);
  else
    of.gone.insert(id);
  erase_if_ended(owner, endpoint);
  forget_if_empty(owner);
}

}  // namespace stp::service
