// SPDX-License-Identifier: BSD-3-Clause
// The implementation of a Service, by subject:
//   service.cpp              turns, sleeping, clients
//   service_bells.cpp        waking the sleeping thread
//   service_requests.cpp     dispatch of Requests
//   service_endpoints.cpp    endpoints, listening
//   service_connections.cpp  channels, connections, Ports of connectionless endpoints
//   service_memory.cpp       regions, Mx
//   service_events.cpp       events of the Node
//   service_leaving.cpp      removal of what has ended, in slices, one in each turn
//   service_admin.cpp        requests of stpctl
//   service_link.cpp         the state of the link
// Functions that answer a request return 0 or a negative errno.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <string>

#include "dpdk_port/dpdk/turn_clock.h"
#include "libst/os/unique_fd.h"
#include "libst/service/client_state.h"
#include "libst/service/text_field.h"

namespace stp::service {

struct Service::Impl {
  Impl(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
       std::shared_ptr<Budgets> budgets);

  // ---- clients ----
  Client* client(ClientId id);
  ClientId unused_id();
  Client* make_client(bool privileged);
  ClientId add_paying(const ClientIdentity& identity, bool operating, bool known, std::string& why);
  void pay_by(Client& client, uid_t uid);
  void leave(Client& client);
  // Removes one object of the client. Returns false if only the Node's events remain to wait for.
  bool leave_step(Client& client);
  // Erases a leaving client that has nothing left.
  void forget_if_empty(Client& client);

  // ---- removal of what has ended, in slices, one in each turn ----
  struct Leftover {
    ClientId client = 0;
    EndpointId endpoint = kNoneId;  // has ended: forget regions that could be asked about
    RegionId region = kNoneId;      // has gone: forget its Mx
    VcId vc = kNoneId;              // has gone: forget its Mx
    std::unordered_set<std::uint16_t> mxs;
  };
  // Returns true if there was work; there may be more.
  bool clean_up();
  // Ends the clients whose memory was found torn.
  void expel_torn();
  bool forget_one(Leftover& of);
  void forget_later(Leftover what);
  static void forget_mx(Client& client, std::uint16_t mx);

  // Returns -EDQUOT and puts the operator's option for this quota into the reply's text.
  int over_quota(const char* option, std::uint64_t value);
  // The same for a budget of the client's user.
  int over_budget(const Client& client, Resource resource);
  int reserve(const Client& client, Resource resource, std::uint64_t amount, Reservation& out);
  // One of this shard's Ports.
  int reserve_port(const Client& client, Reservation& out);
  // Turns exceptions into an error of the request, so that only the asker is affected.
  template <typename Work>
  int guarded(Reply& reply, Work&& work) {
    exceeded.clear();
    answering = true;
    try {
      reply.result = work();
    } catch (const std::bad_alloc&) {
      reply.result = -ENOMEM;
    } catch (...) {
      reply.result = -EIO;
    }
    answering = false;
    if (reply.result == -EDQUOT) set_text(reply.text, exceeded);
    return reply.result;
  }
  int answer(Client& client, const Request& request, Attachments& attachments, Reply& reply);
  int hello(const Client& client, Attachments& attachments, Reply& reply);
  int resolve(Client& client, const Request& request, Reply& reply);
  int query_link(Reply& reply);
  int stats(const Request& request, Reply& reply) const;
  int trouble(const Request& request, Reply& reply) const;
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

  struct Extent;
  int measure(Client& client, const Request& request, std::uint64_t mapped, Extent& out);
  int map(Client& client, const Request& request, Attachments& attachments, Reply& reply);
  int unmap(Client& client, RegionId id);
  int alloc_mx(Client& client, const Request& request, Reply& reply);
  int free_mx(Client& client, const Request& request);

  struct Viewer {
    ClientId id = 0;  // 0: no client
    const ClientIdentity& identity;
  };
  int watch(const Viewer& viewer, const Request& request, Reply& reply) const;
  void admin_link(const Viewer& viewer, Reply& reply) const;
  int admin_connection(const Viewer& viewer, const Request& request, Reply& reply) const;
  int admin_region(const Viewer& viewer, const Request& request, Reply& reply) const;
  int admin_user(const Viewer& viewer, const Request& request, Reply& reply) const;
  static bool may_see(const Viewer& viewer, uid_t owner);
  static bool may_see(const Viewer& viewer, const Client& owner);

  // ---- endpoints ----
  void end_endpoint(Client& client, EndpointId id, Endpoint& endpoint);
  void drop_backlog(Client& client, EndpointId id, Endpoint& endpoint);
  void erase_if_ended(Client& client, EndpointId id);
  static void forget_region(Client& client, RegionId id);
  void settle_tables(Client& client, EndpointId id, Endpoint& endpoint);

  // ---- channels ----
  int make_channel(Client& client, EndpointId id, Bell& out);
  void release_channel(Client& client, Bell bell);
  static void hand_out(const Channel& channel, Bell number, Attachments& attachments, Reply& reply);
  int restock(Client& client, EndpointId id, Endpoint& endpoint);
  int stock(Client& client, EndpointId id, Endpoint& endpoint, Bell bell);
  int take_connection(Client& client, EndpointId id, Endpoint& endpoint, Bell& out);
  static void put_to_use(Client& client, VcId vc, Bell bell);
  static void set_closing(Client& client, Channel& channel);
  // A channel's cookie also contains its client's id.
  static std::uint64_t cookie(const Client& client, Bell bell) {
    return std::uint64_t{client.id} << 32 | bell;
  }

  // ---- memory ----
  void start_unmap(RegionId id, Region& region);

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

  // ---- the link ----
  void look_at_link(Time now);
  void note_link_change();
  void tell_link_state(Client& client) const;

  // ---- turns ----
  bool kick(const Client& client, Bell number);
  bool collect_bells();
  bool collect_bells_of(Client& client);
  bool any_bell() const;
  void ring_own_bell();
  // service_bells.cpp
  int watch_bell(int operation, int fd, ClientId whose, bool heard);
  void watch_link(int fd);
  void sleep_on_bells(Time length);
  void hear_bells();
  void rang_in_vain(Client& client);
  void end_silences();

  DriveLock lock;
  UniqueFd bell;                       // for threads of this process
  UniqueFd bells;                      // an epoll of `bell` and the clients' bells
  int link_fd = -1;                    // signals frames, as registered in `bells`
  std::array<epoll_event, 64> rung{};  // the events that ended the last sleep
  int rung_count = 0;
  Time silent_until = kNever;  // when the first of the silenced clients is heard again
  std::uint64_t silences = 0;
  Quotas quotas;
  const std::shared_ptr<Budgets> budgets;
  // With several shards, what each user has of the Ports of this one: a user may have half of the
  // link's Ports, which are more than one shard has. Only Resource::kConnections has a total.
  const std::shared_ptr<Budgets> own_ports = std::make_shared<Budgets>();
  bool answering = false;
  std::string exceeded;  // for the request being answered: the exhausted resource, and the remedy
  PortRules port_rules;
  int first_reserved_file = std::numeric_limits<int>::max();
  bool asleep = false;
  // Including leaving clients. The number of places bounds their number, so loops over them are
  // short.
  std::unordered_map<ClientId, Client> clients;
  std::deque<ClientId> leaving;  // clients with something left to remove
  std::deque<Leftover> leftovers;
  std::deque<ClientId> expelled;
  UniqueFd expelled_fd;
  std::uint64_t seen_tears = 0;
  ClientId last_client = 0;
  // Owners of endpoints and regions, to dispatch events.
  std::map<EndpointId, ClientId> endpoint_owner;
  std::map<RegionId, ClientId> region_owner;
  std::function<std::vector<port::PortCounter>()> more_counters;
  std::unique_ptr<port::Port> port;
  port::LinkState link_state;      // at the last look
  std::uint32_t link_changes = 0;  // since the link was opened
  Time link_state_since = 0;
  std::optional<port::Ipv4> link_address;  // at the last look
  Time look_at_link_at = 0;
  std::deque<LinkChange> noted_changes;
  std::uint64_t unnoted_changes = 0;
  // Memory of windows, taken from the budgets of the clients' users. A client's part may outlive
  // the client for some turns.
  struct Windows final : WindowBudget {
    explicit Windows(Impl& impl) : service(impl) {}
    bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override;
    Impl& service;
    std::unordered_map<ClientId, Reservation> held;
  } windows{*this};
  // The Node's only source of time; under the drive lock.
  port::TurnClock clock;
  Node node;  // destroyed first: it refers to memory that the clients own
};

}  // namespace stp::service
