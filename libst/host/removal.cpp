// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/removal.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

#include "libst/host/memory_guard.h"
#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp::service {
namespace {

// Steps of removal in one turn, for all clients together.
constexpr int kSlice = 64;

}  // namespace

Removal::Removal(ClientTable& clients, Bells& bells, Connections& connections, Regions& regions,
                 Endpoints& endpoints, Leftovers& leftovers)
    : clients_(clients),
      bells_(bells),
      connections_(connections),
      regions_(regions),
      endpoints_(endpoints),
      leftovers_(leftovers),
      expelled_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!expelled_fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Removal::begin(Client& client) {
  STP_ASSERT(!client.leaving, "a client leaves once");
  bells_.remove(client);
  client.leaving = true;
  leaving_.push_back(client.id);
}

void Removal::expel_torn() {
  const auto tears = MemoryGuard::tears();
  if (tears == seen_tears_) return;
  seen_tears_ = tears;
  for (auto& [id, client] : clients_) {
    work::count("clients");
    if (!client.torn->exchange(false) || client.leaving) continue;
    begin(client);
    expelled_.push_back(id);
    ::eventfd_write(expelled_fd_.get(), 1);
  }
}

std::optional<ClientId> Removal::next_expelled() {
  if (expelled_.empty()) return std::nullopt;
  const auto id = expelled_.front();
  expelled_.pop_front();
  return id;
}

bool Removal::go_on() {
  bool any = false;
  for (int step = 0; step < kSlice; ++step) {
    work::count("what is over");
    if (!leaving_.empty()) {
      any = true;
      const auto id = leaving_.front();
      leaving_.pop_front();
      auto* const gone = clients_.find(id);
      if (gone == nullptr) continue;
      if (remove_one_of(*gone))
        leaving_.push_back(id);  // one step of each in turn
      else
        clients_.forget_if_empty(*gone);
    }
    if (!leftovers_.empty()) {
      any = true;
      auto* const owner = clients_.find(leftovers_.front().client);
      if (owner != nullptr && remove_one_of(leftovers_.front(), *owner)) continue;
      leftovers_.pop_front();
      if (owner != nullptr) clients_.forget_if_empty(*owner);
    } else if (leaving_.empty()) {
      break;
    }
  }
  return any;
}

// Returns false if only the Node's events remain to wait for. Connections first, so that their
// peers are told; then regions; then endpoints. An endpoint is erased with the last of its objects.
bool Removal::remove_one_of(Client& client) {
  if (client.next_bell < client.channels.numbers()) {
    connections_.give_up(client, client.next_bell++);
    return true;
  }
  if (const auto at = client.regions.upper_bound(client.next_region); at != client.regions.end()) {
    client.next_region = at->first;
    if (at->second.state == RegionState::kGone)
      Regions::forget(client, at->first);
    else
      regions_.start_unmap(at->first, at->second);
    return true;
  }
  const auto at = client.endpoints.upper_bound(client.next_endpoint);
  if (at == client.endpoints.end()) return false;
  client.next_endpoint = at->first;
  if (!at->second.ending) endpoints_.end(client, at->first, at->second);
  return true;
}

// Removes one Mx or region of the leftover. Returns false if nothing is left of it.
bool Removal::remove_one_of(const Leftover& leftover, Client& client) {
  if (leftover.region != kNoneId) return client.mxs.remove_one_of_region(leftover.region);
  if (leftover.vc != kNoneId) return client.mxs.remove_one_of_connection(leftover.vc);
  const auto at = client.endpoints.find(leftover.endpoint);
  if (at == client.endpoints.end()) return false;
  if (const auto& gone = at->second.gone; !gone.empty()) {
    Regions::forget(client, *gone.begin());
    return true;
  }
  endpoints_.erase_if_ended(client, leftover.endpoint);
  return false;
}

}  // namespace stp::service
