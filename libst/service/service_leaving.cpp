// SPDX-License-Identifier: BSD-3-Clause
// Removes what has ended, a slice in each turn: a client that leaves may have thousands of objects,
// and no other client should wait until all of them are removed.
#include <sys/eventfd.h>

#include <utility>

#include "libst/service/service_impl.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

// Steps of removal in one turn, for all clients together.
constexpr int kSlice = 64;

}  // namespace

void Service::Impl::leave(Client& client) {
  STP_ASSERT(!client.leaving, "a client leaves once");
  client.leaving = true;
  // Others may still hold the bell, for example a forked child: stops listening to it.
  if (client.bell_file) watch_bell(EPOLL_CTL_DEL, client.bell_file.get(), client.id, false);
  client.bell_file.reset();
  leaving.push_back(client.id);
}

// Removes clients that took away pages which they had lent: the data in those pages is lost, so
// such a client cannot go on.
void Service::Impl::expel_torn() {
  const auto tears = MemoryGuard::tears();
  if (tears == seen_tears) return;
  seen_tears = tears;
  for (auto& [id, client] : clients) {
    work::count("clients");
    if (!client.torn->exchange(false) || client.leaving) continue;
    leave(client);
    expelled.push_back(id);
    ::eventfd_write(expelled_fd.get(), 1);
  }
}

bool Service::Impl::clean_up() {
  bool any = false;
  for (int step = 0; step < kSlice; ++step) {
    work::count("what is over");
    if (!leaving.empty()) {
      any = true;
      const auto id = leaving.front();
      leaving.pop_front();
      auto* const gone = client(id);
      if (gone == nullptr) continue;
      if (leave_step(*gone))
        leaving.push_back(id);  // one step of each in turn
      else
        forget_if_empty(*gone);
    }
    if (!leftovers.empty()) {
      any = true;
      if (forget_one(leftovers.front())) continue;
      auto* const owner = client(leftovers.front().client);
      leftovers.pop_front();
      if (owner != nullptr) forget_if_empty(*owner);
    } else if (leaving.empty()) {
      break;
    }
  }
  return any;
}

// Connections first, so that their peers are told; then regions; then endpoints. An endpoint is
// erased with the last of its objects.
bool Service::Impl::leave_step(Client& client) {
  if (client.next_bell < client.channels.size()) {
    auto* const channel = client.channels[client.next_bell++].get();
    if (channel == nullptr || channel->vc == kNoneId) return true;
    set_closing(client, *channel);
    node.close(channel->vc, true, clock.now());
    return true;
  }
  if (const auto at = client.regions.upper_bound(client.next_region); at != client.regions.end()) {
    client.next_region = at->first;
    if (at->second.state == Region::State::kGone)
      forget_region(client, at->first);
    else
      start_unmap(at->first, at->second);
    return true;
  }
  const auto at = client.endpoints.upper_bound(client.next_endpoint);
  if (at == client.endpoints.end()) return false;
  client.next_endpoint = at->first;
  if (!at->second.ending) end_endpoint(client, at->first, at->second);
  return true;
}

void Service::Impl::forget_if_empty(Client& client) {
  if (!client.leaving || !client.empty()) return;
  STP_ASSERT(client.channel_bytes == 0 && client.slots == 0 && client.mapped_bytes == 0 &&
                 client.table_bytes == 0 && client.vcs.empty(),
             "a client of which nothing is left holds nothing");
  clients.erase(client.id);
}

// ---- leftovers of endpoints, regions and connections

void Service::Impl::forget_later(Leftover what) {
  leftovers.push_back(std::move(what));
}

// Forgets one Mx or region of the leftover. Returns false if nothing is left of it.
bool Service::Impl::forget_one(Leftover& of) {
  auto* const owner = client(of.client);
  if (owner == nullptr) return false;
  if (of.endpoint != kNoneId) {
    const auto at = owner->endpoints.find(of.endpoint);
    if (at == owner->endpoints.end()) return false;
    if (auto& gone = at->second.gone; !gone.empty()) {
      forget_region(*owner, *gone.begin());
      return true;
    }
    erase_if_ended(*owner, of.endpoint);
    return false;
  }
  if (of.mxs.empty()) return false;
  const auto mx = *of.mxs.begin();
  of.mxs.erase(of.mxs.begin());
  const auto at = owner->mxs.find(mx);
  // By now the Mx may have been given to another region or connection.
  if (at == owner->mxs.end()) return true;
  const auto& use = at->second;
  if ((of.region != kNoneId && use.region == of.region) || (of.vc != kNoneId && use.vc == of.vc))
    forget_mx(*owner, mx);
  return true;
}

void Service::Impl::forget_mx(Client& client, std::uint16_t mx) {
  const auto at = client.mxs.find(mx);
  if (at == client.mxs.end()) return;
  if (auto* const region = client.region(at->second.region)) region->mxs.erase(mx);
  if (auto* const channel = client.connection(at->second.vc)) channel->mxs.erase(mx);
  client.mxs.erase(at);
}

void Service::Impl::forget_region(Client& client, RegionId id) {
  const auto at = client.regions.find(id);
  if (at == client.regions.end()) return;
  STP_ASSERT(at->second.state == Region::State::kGone, "a region is forgotten once it has gone");
  if (const auto of = client.endpoints.find(at->second.endpoint); of != client.endpoints.end())
    of->second.gone.erase(id);
  client.regions.erase(at);
}

}  // namespace stp::service
