// SPDX-License-Identifier: BSD-3-Clause
// Pays for the memory with which the Node tracks incoming data: the budget of each client's user
// pays for what the client's endpoints take. A client's part may outlive the client for some turns.
#pragma once

#include <unordered_map>

#include "libst/service/client_table.h"
#include "stp/node/node.h"

namespace stp::service {

class WindowAccounts final : public WindowBudget {
 public:
  explicit WindowAccounts(ClientTable& clients) : clients_(clients) {}

  bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override;

 private:
  ClientTable& clients_;
  std::unordered_map<ClientId, Reservation> held_;  // none is empty
};

}  // namespace stp::service
