// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/client_table.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/ipc/requests.h"
#include "stp/base/assert.h"

namespace stp::service {

// A channel's cookie has 32 bits for its client, so ids wrap around. Ids in use are skipped.
ClientId ClientTable::unused_id() {
  return last_ = next_client_id(last_, clients_);
}

Client* ClientTable::add(bool privileged) {
  auto page = SharedMemory::create_own(sizeof(ClientPage));
  if (!page) return nullptr;
  const auto id = unused_id();
  STP_ASSERT(id != 0 && !clients_.contains(id), "a new client has an id of its own");
  auto& client = clients_[id];
  client.id = id;
  client.privileged = privileged;
  client.payer = allow_.payer(kUnknownUser);
  client.page_memory = std::move(page);
  client.page().begin(kProtocolVersion);
  return &client;
}

Client* ClientTable::add(const ClientIdentity& identity, Place where, std::string& why) {
  auto payer = allow_.payer(identity.uid);
  Reservation place, page, files;
  const auto reserve = [&](Resource resource, std::uint64_t amount, Reservation& out) {
    if (payer.account.reserve(resource, amount, out)) return true;
    why = payer.account.refusal(resource);
    errno = EDQUOT;
    return false;
  };
  // Files: the page and the bell, and once per program its socket and its process descriptor.
  const auto of_program = where == Place::kOwn ? 1U : 0U;
  if (where != Place::kOperator &&
      ((where == Place::kOwn && !reserve(Resource::kClients, 1, place)) ||
       !reserve(Resource::kMappings, 1, page) ||
       !reserve(Resource::kFiles, 2 + 2 * of_program, files)))
    return nullptr;
  auto* const client = add(identity.uid == 0);
  if (client == nullptr) return nullptr;
  client->payer = std::move(payer);
  client->place = std::move(place);
  client->files = std::move(files);
  client->mapping = std::move(page);
  client->identity = identity;
  return client;
}

void ClientTable::identify(Client& client, const ClientIdentity& identity) {
  client.identity = identity;
  client.payer = allow_.payer(identity.uid);
}

void ClientTable::forget_if_empty(Client& client) {
  if (!client.leaving || !client.empty()) return;
  clients_.erase(client.id);
}

bool WindowAccounts::hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) {
  const auto id = static_cast<ClientId>(owner);
  const auto at = held_.find(id);
  const auto has = at == held_.end() ? 0 : at->second.amount();
  if (bytes <= before) {
    STP_ASSERT(before - bytes <= has, "what a purse gives back its owner holds");
    const auto left = has - std::min<std::uint64_t>(has, before - bytes);
    if (left != 0)
      at->second.shrink(left);
    else if (at != held_.end())
      held_.erase(at);
    return true;
  }
  const auto* const client = clients_.find(id);
  Reservation more;
  if (client == nullptr ||
      !client->payer.account.reserve(Resource::kWindowBytes, bytes - before, more))
    return false;
  held_[id].join(std::move(more));
  return true;
}

}  // namespace stp::service
