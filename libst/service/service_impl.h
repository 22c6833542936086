// SPDX-License-Identifier: BSD-3-Clause
// The inside of a Service, by subject:
//   service.cpp              turns, sleeping, clients
//   service_requests.cpp     from a Request to the function that answers it
//   service_endpoints.cpp    endpoints, listening
//   service_connections.cpp  channels, connections, Ports of connectionless endpoints
//   service_memory.cpp       regions, Mx
//   service_events.cpp       what the Node tells
//   service_admin.cpp        what stpctl asks
// Functions that answer a request return 0 or a negative errno.
#pragma once

#include <functional>
#include <limits>
#include <map>

#include "dpdk_port/turn_clock.h"
#include "libst/service/client_state.h"
#include "libst/service/unique_fd.h"

namespace stp::service {

struct Service::Impl {
  Impl(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted);

  // ---- clients ----
  Client* client(ClientId id);
  void leave(Client& client);
  // Forgets a leaving client of which nothing is left.
  void forget_if_empty(Client& client);

  // ---- requests ----
  // -EDQUOT, with the option of the operator's that says so, for the reply.
  int over_quota(const char* option) {
    exceeded = option;
    return -EDQUOT;
  }
  int answer(Client& client, const Request& request, Attachments& attachments, Reply& reply);
  int hello(const Client& client, Attachments& attachments, Reply& reply);
  int resolve(const Request& request, Reply& reply);
  int stats(const Request& request, Reply& reply) const;
  std::vector<port::PortCounter> other_counters() const;

  int open_endpoint(Client& client, const Request& request, Reply& reply);
  int configure(Client& client, const Request& request, Reply& reply);
  int endpoint_config(Client& client, const Request& request, Reply& reply) const;
  int close_endpoint(Client& client, EndpointId id);
  int listen(Client& client, const Request& request);
  bool may_listen(const Client& client, std::uint32_t on) const;
  int unlisten(Client& client, EndpointId id);

  int connect(Client& client, const Request& request, Attachments& attachments, Reply& reply);
  int accept(Client& client, EndpointId id, Attachments& attachments, Reply& reply);
  int backlog(Client& client, EndpointId id, Reply& reply) const;
  int decide(Client& client, const Request& request);
  int open_port(Client& client, EndpointId id, Attachments& attachments, Reply& reply);
  int vc_info(Client& client, VcId vc, Reply& reply) const;
  static void set_vc_info(VcId vc, const VcInfo& info, Reply& reply);
  int close(Client& client, const Request& request);

  int map(Client& client, const Request& request, Attachments& attachments, Reply& reply);
  int unmap(Client& client, RegionId id);
  int alloc_mx(Client& client, const Request& request, Reply& reply);
  int free_mx(Client& client, const Request& request);

  int admin(const Client& client, const Request& request, Reply& reply) const;
  void admin_link(const Client& client, Reply& reply) const;
  int admin_connection(const Client& client, const Request& request, Reply& reply) const;
  int admin_region(const Client& client, const Request& request, Reply& reply) const;

  // ---- endpoints ----
  void end_endpoint(Client& client, EndpointId id, Endpoint& endpoint);
  void drop_backlog(Client& client, EndpointId id, Endpoint& endpoint);
  void erase_if_ended(Client& client, EndpointId id);

  // ---- channels ----
  int make_channel(Client& client, EndpointId id, Bell& out);
  void release_channel(Client& client, Bell bell);
  static void hand_out(const Channel& channel, Bell number, Attachments& attachments, Reply& reply);
  int restock(Client& client, EndpointId id, Endpoint& endpoint);
  int stock(Client& client, EndpointId id, Endpoint& endpoint, Bell bell);
  int take_connection(Client& client, EndpointId id, Endpoint& endpoint, Bell& out);
  // A channel's cookie names its client, too.
  static std::uint64_t cookie(const Client& client, Bell bell) {
    return std::uint64_t{client.id} << 32 | bell;
  }

  // ---- memory ----
  void start_unmap(Client& client, RegionId id, Region& region);

  // ---- events ----
  bool handle_events();
  void handle_event(const Event& event);
  void ring_news(std::uint64_t cookie);
  void wake_channel(std::uint64_t cookie);
  static void wake_user(const Client& owner, const Channel& channel);
  static void wake_page(ClientPage& page);
  void accept_ready(EndpointId id);
  void vc_over(std::uint64_t cookie);
  void stock_low(EndpointId id);
  void vc_gone(VcId vc, std::uint64_t cookie);
  void region_gone(RegionId id);

  // ---- turns ----
  void kick(const Client& client, Bell number);
  bool collect_bells();
  bool any_bell() const;
  void ring_own_bell();

  DriveLock lock;
  UniqueFd bell;
  Quotas quotas;
  const char* exceeded = nullptr;  // by the request that is being answered
  PortRules port_rules;
  int first_reserved_file = std::numeric_limits<int>::max();
  bool asleep = false;
  std::unordered_map<ClientId, Client> clients;
  ClientId last_client = 0;
  // Whose an endpoint or a region is, for events.
  std::unordered_map<EndpointId, ClientId> endpoint_owner;
  std::map<RegionId, ClientId> region_owner;
  std::function<std::vector<port::PortCounter>()> more_counters;
  std::unique_ptr<port::Port> port;
  // All that the Node is told of time; under the drive lock.
  port::TurnClock clock;
  Node node;  // goes first: it holds what the clients own
};

}  // namespace stp::service
