// SPDX-License-Identifier: BSD-3-Clause
// A Service is composed of mechanisms, each with its own header. The Impl routes turns, requests
// and events to them:
//   service.cpp           clients, turns, sleeping
//   service_requests.cpp  requests of clients
//   service_events.cpp    events of the Node
#pragma once

#include <memory>
#include <optional>

#include "dpdk_port/dpdk/turn_clock.h"
#include "libst/service/allowances.h"
#include "libst/service/bells.h"
#include "libst/service/client_table.h"
#include "libst/service/connections.h"
#include "libst/service/endpoints.h"
#include "libst/service/inspection.h"
#include "libst/service/leftovers.h"
#include "libst/service/link_watch.h"
#include "libst/service/offers.h"
#include "libst/service/regions.h"
#include "libst/service/removal.h"
#include "libst/service/service.h"
#include "libst/service/wakes.h"
#include "libst/service/window_accounts.h"

namespace stp::service {

struct Service::Impl {
  Impl(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
       std::shared_ptr<Budgets> budgets);

  // Returns the id of a client that was just added; 0 for nullptr.
  ClientId greet(Client* client) const;
  // nullptr: no such client, or it leaves.
  Client* present(ClientId id);

  // Requests. They return 0 or a negative errno.
  int answer(Client& client, const Request& request, Attachments& attachments, Reply& reply);
  int info(Client& client, VcId vc, Reply& reply);
  int hello(Client& client, Attachments& attachments, Reply& reply);
  int mapped(Client& client, VcId vc);
  int resolve(Client& client, const Request& request, Reply& reply);
  int unmap(Client& client, RegionId id);

  // Handles a bounded number of events, and wakes who waits for them. Returns true if there were
  // any; more may be left.
  bool handle_events();
  void handle_event(const Event& event);
  void accept_ready(EndpointId id);
  void stock_low(EndpointId id);
  void vc_over(std::uint64_t cookie);
  void vc_gone(VcId vc, std::uint64_t cookie);
  void region_gone(RegionId id);

  DriveLock lock;
  port::TurnClock clock;  // the Node's only source of time; under the drive lock
  Allowances allow;
  ClientTable clients{allow};
  Bells bells{clients, clock};
  // Frames that the device still sends may refer to memory of clients, and it rings our bell: so it
  // is destroyed before them.
  std::unique_ptr<port::Port> port;
  Wakes wakes{clients};
  LinkWatch link;
  WindowAccounts windows{clients};
  Leftovers leftovers;
  Offers offers;
  Connections connections{node, allow, offers, leftovers, wakes, clock};
  Endpoints endpoints{node, allow, connections, leftovers};
  Regions regions{node, allow, leftovers};
  Removal removal{clients, bells, connections, regions, endpoints, leftovers};
  Inspection inspection{*port, node, clients, regions, allow, link};
  Node node;  // destroyed first: it uses memory of clients, and the port
};

}  // namespace stp::service
