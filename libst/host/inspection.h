// SPDX-License-Identifier: BSD-3-Clause
// What can be seen of a link: its state, each change of which is reported to the clients through
// their pages and to the owner of the Service, who writes the log; and the answers to requests that
// only watch: the link, the counters, and connections, regions and users one by one, as far as the
// viewer may see them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/port.h"
#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "libst/host/endpoints.h"
#include "libst/host/service.h"
#include "libst/ipc/requests.h"

namespace stp::host {

class Wakes;

class LinkWatch {
 public:
  // A link that is not up now counts as changed.
  LinkWatch(port::Port& port, ClientTable& clients, Wakes& wakes, Time now);

  // Call in each turn: looks every 10 ms, which is how late a change is reported at most.
  void turn(Time now) {
    if (now >= next_look_) look(now);
  }
  // Writes the state into the page of a new client.
  void greet(Client& client) const;
  void answer(ask::LinkState::Reply& reply, Time now) const;
  // How often the state has changed since the link was opened.
  [[nodiscard]] std::uint32_t changes() const { return changes_; }
  // Returns the changes one by one, in order; nullopt: no more. Keeps only the last few.
  std::optional<LinkChange> next_change();

 private:
  void look(Time now);
  void note();

  port::Port& port_;
  ClientTable& clients_;
  Wakes& wakes_;
  // At the last look.
  port::LinkState state_;
  std::optional<port::Ipv4> address_;
  Time since_, next_look_ = 0;
  std::uint32_t changes_ = 0;
  std::deque<LinkChange> noted_;
  std::uint64_t unnoted_ = 0;
};

struct Viewer {
  ClientId id = 0;  // 0: no client
  const ipc::ClientIdentity& identity;
};

class Inspection {
 public:
  Inspection(const port::Port& port, const Node& node, const ClientTable& clients,
             const Regions& regions, const Allowances& allow, const LinkWatch& link)
      : port_(port),
        node_(node),
        clients_(clients),
        regions_(regions),
        allow_(allow),
        link_(link) {}

  // Appends the result of `counters` to the counters.
  void add_counters(std::function<std::vector<port::PortCounter>()> counters) {
    more_counters_ = std::move(counters);
  }
  // Appends the result of `trouble` to that of the link, for who asks for the link.
  void add_trouble(std::function<std::string()> trouble) { more_trouble_ = std::move(trouble); }
  // The Node's counters first, then the link's, then those that were added.
  [[nodiscard]] std::vector<port::PortCounter> all_counters() const;

  // Requests that only watch. They return 0 or a negative errno.
  int answer(const Viewer& viewer, const ask::Stats& request, ask::Stats::Reply& reply) const;
  int answer(const Viewer& viewer, const ask::AdminLink& request,
             ask::AdminLink::Reply& reply) const;
  int answer(const Viewer& viewer, const ask::AdminConnection& request,
             ask::AdminConnection::Reply& reply) const;
  int answer(const Viewer& viewer, const ask::AdminRegion& request,
             ask::AdminRegion::Reply& reply) const;
  int answer(const Viewer& viewer, const ask::AdminUser& request,
             ask::AdminUser::Reply& reply) const;
  int answer(const Viewer& viewer, const ask::AdminSteering& request,
             ask::AdminSteering::Reply& reply) const;

 private:
  [[nodiscard]] std::vector<port::PortCounter> other_counters() const;
  [[nodiscard]] std::string all_trouble() const;

  const port::Port& port_;
  const Node& node_;
  const ClientTable& clients_;
  const Regions& regions_;
  const Allowances& allow_;
  const LinkWatch& link_;
  std::function<std::vector<port::PortCounter>()> more_counters_;
  std::function<std::string()> more_trouble_;
};

}  // namespace stp::host
