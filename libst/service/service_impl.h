// SPDX-License-Identifier: BSD-3-Clause
// The inside of a Service, by subject:
//   service.cpp              turns, sleeping, clients
//   service_bells.cpp        what wakes a sleeper
//   service_requests.cpp     from a Request to the function that answers it
//   service_endpoints.cpp    endpoints, listening
//   service_connections.cpp  channels, connections, Ports of connectionless endpoints
//   service_memory.cpp       regions, Mx
//   service_events.cpp       what the Node tells
//   service_leaving.cpp      what is over, taken down a slice in each turn
//   service_admin.cpp        what stpctl asks
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
  Impl(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted);

  // ---- clients ----
  Client* client(ClientId id);
  ClientId unused_id();
  Client* make_client(bool privileged);
  void pay_by(Client& client, uid_t uid);
  void leave(Client& client);
  // Takes down one thing of it. False: nothing is left but to wait for the Node.
  bool leave_step(Client& client);
  // Forgets a leaving client of which nothing is left.
  void forget_if_empty(Client& client);

  // ---- what is over, and is forgotten a slice in each turn ----
  struct Leftover {
    ClientId client = 0;
    EndpointId endpoint = kNoneId;  // it has ended: the regions that might have been asked after
    RegionId region = kNoneId;      // it has gone, and these Mx with it
    VcId vc = kNoneId;              // likewise
    std::unordered_set<std::uint16_t> mxs;
  };
  // True: there was something to do, and there may be more.
  bool clean_up();
  // Ends the clients whose memory was found torn.
  void expel_torn();
  bool forget_one(Leftover& of);
  void forget_later(Leftover what);
  static void forget_mx(Client& client, std::uint16_t mx);

  // ---- requests ----
  // -EDQUOT, with the option of the operator's that says so, for the reply.
  int over_quota(const char* option, std::uint64_t value);
  // The same where it is its user's budget.
  int over_budget(const Client& client, Resource resource);
  int reserve(const Client& client, Resource resource, std::uint64_t amount, Reservation& out);
  // Whatever goes wrong in answering is the asker's alone.
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
  int query_link(Reply& reply) const;
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

  int admin(const Client& client, const Request& request, Reply& reply) const;
  void admin_link(const Client& client, Reply& reply) const;
  int admin_connection(const Client& client, const Request& request, Reply& reply) const;
  int admin_region(const Client& client, const Request& request, Reply& reply) const;
  int admin_user(const Client& client, const Request& request, Reply& reply) const;

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
  // A channel's cookie names its client, too.
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
  UniqueFd bell;                       // of this process
  UniqueFd bells;                      // an epoll: that one, and those of clients
  int link_fd = -1;                    // what tells of frames, as far as `bells` has it
  std::array<epoll_event, 64> rung{};  // what ended the last sleep
  int rung_count = 0;
  Time silent_until = kNever;  // when the first of the clients that are not heard is heard again
  std::uint64_t silences = 0;
  Quotas quotas;
  const std::shared_ptr<Budgets> budgets = std::make_shared<Budgets>();
  bool answering = false;
  std::string exceeded;  // by the request that is being answered: what, and what would help
  PortRules port_rules;
  int first_reserved_file = std::numeric_limits<int>::max();
  bool asleep = false;
  // As many as there are places, those included that are leaving: who walks them takes few steps.
  std::unordered_map<ClientId, Client> clients;
  std::deque<ClientId> leaving;  // of whom there is something to take down
  std::deque<Leftover> leftovers;
  std::deque<ClientId> expelled;
  UniqueFd expelled_fd;
  std::uint64_t seen_tears = 0;
  ClientId last_client = 0;
  // Whose an endpoint or a region is, for events.
  std::map<EndpointId, ClientId> endpoint_owner;
  std::map<RegionId, ClientId> region_owner;
  std::function<std::vector<port::PortCounter>()> more_counters;
  std::unique_ptr<port::Port> port;
  port::LinkState link_state;      // as of the last look at it
  std::uint32_t link_changes = 0;  // since it was opened
  Time look_at_link_at = 0;
  std::deque<LinkChange> noted_changes;
  std::uint64_t unnoted_changes = 0;
  // Memory that keeps track of what is on its way, from the budgets of whose clients these are.
  // What a client has taken may outlive it for some turns.
  struct Windows final : WindowBudget {
    explicit Windows(Impl& impl) : service(impl) {}
    bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override;
    Impl& service;
    std::unordered_map<ClientId, Reservation> held;
  } windows{*this};
  // All that the Node is told of time; under the drive lock.
  port::TurnClock clock;
  Node node;  // goes first: it holds what the clients own
};

}  // namespace stp::service
