// SPDX-License-Identifier: BSD-3-Clause
// The clients of one Service, and the accounts that pay for what the Node keeps for them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "libst/service/allowances.h"
#include "libst/service/client.h"
#include "stp/node/node.h"

namespace stp::service {

// The clients of one Service: who they are, their ids, and what their users pay for their places.
// A client that leaves stays in the table until nothing of it is left. The number of places bounds
// the number of clients, so loops over them are short.
class ClientTable {
 public:
  explicit ClientTable(Allowances& allow) : allow_(allow) {}

  // Adds a client that belongs to no user: only the totals limit it. `privileged`: may choose Keys.
  // nullptr: there is no memory for its page (errno).
  Client* add(bool privileged);
  enum class Place {
    kOwn,       // pays for its place, its socket and its process descriptor
    kOperator,  // in one of the few places reserved for operators, which cost nothing
    kKnown      // the program has paid on another shard; pays for its page and its bell only
  };
  // Adds the program of a user. nullptr: as above, or the user has as many as it may (errno EDQUOT,
  // `why` has the text).
  Client* add(const ClientIdentity& identity, Place place, std::string& why);
  // The user decides who may see the client's objects, and whose budgets pay for later ones.
  void identify(Client& client, const ClientIdentity& identity);

  // nullptr: there is no such client.
  [[nodiscard]] Client* find(ClientId id) {
    const auto at = clients_.find(id);
    return at == clients_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] const Client* find(ClientId id) const {
    return const_cast<ClientTable*>(this)->find(id);
  }
  [[nodiscard]] std::size_t size() const { return clients_.size(); }
  [[nodiscard]] auto begin() { return clients_.begin(); }
  [[nodiscard]] auto end() { return clients_.end(); }
  [[nodiscard]] auto begin() const { return clients_.begin(); }
  [[nodiscard]] auto end() const { return clients_.end(); }

  // Removes a client that leaves, if nothing is left of it.
  void forget_if_empty(Client& client);

 private:
  ClientId unused_id();

  Allowances& allow_;
  std::unordered_map<ClientId, Client> clients_;
  ClientId last_ = 0;
};

// Returns the next unused id after `last`, which may wrap around. Never 0.
template <typename Clients>
ClientId next_client_id(ClientId last, const Clients& in_use) {
  do {
    ++last;
  } while (last == 0 || in_use.contains(last));
  return last;
}

// Pays for the memory with which the Node tracks incoming data: the budget of each client's user
// pays for what the client's endpoints take. A client's part may outlive the client for some turns.
class WindowAccounts final : public WindowBudget {
 public:
  explicit WindowAccounts(ClientTable& clients) : clients_(clients) {}

  bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override;

 private:
  ClientTable& clients_;
  std::unordered_map<ClientId, Reservation> held_;  // none is empty
};

}  // namespace stp::service
