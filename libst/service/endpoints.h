// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of clients: whose each one is, who may listen on which port, and when an endpoint that
// its client has closed can be erased: with the last of its channels and regions.
#pragma once

#include <map>
#include <utility>

#include "libst/service/allowances.h"
#include "libst/service/client.h"
#include "libst/service/connections.h"
#include "libst/service/leftovers.h"
#include "libst/service/port_rules.h"

namespace stp::service {

class Endpoints {
 public:
  Endpoints(Node& node, Allowances& allow, Connections& connections, Leftovers& leftovers)
      : node_(node), allow_(allow), connections_(connections), leftovers_(leftovers) {}

  void set_port_rules(PortRules rules) { rules_ = std::move(rules); }

  // Requests. They return 0 or a negative errno.
  int open(Client& client, const Request& request, Reply& reply);
  int configure(Client& client, const Request& request, Reply& reply);
  int config(Client& client, const Request& request, Reply& reply) const;
  int close(Client& client, EndpointId id);
  int listen(Client& client, const Request& request);
  int unlisten(Client& client, EndpointId id);

  // 0: the endpoint is nobody's, or no longer.
  [[nodiscard]] ClientId owner_of(EndpointId id) const;
  // From now on the client's requests do not find the endpoint. Its connections end later.
  void end(Client& client, EndpointId id, Endpoint& endpoint);
  // Call when one of its objects has gone.
  void erase_if_ended(Client& client, EndpointId id);

 private:
  [[nodiscard]] bool may_listen(const Client& client, std::uint32_t on) const;
  // -EACCES, with the reason in the reply.
  int no_rule(const Client& client, std::uint32_t port);

  Node& node_;
  Allowances& allow_;
  Connections& connections_;
  Leftovers& leftovers_;
  PortRules rules_;
  std::map<EndpointId, ClientId> owners_;
};

}  // namespace stp::service
