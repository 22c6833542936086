// SPDX-License-Identifier: BSD-3-Clause
// Answers requests that only watch: the link, the counters, and connections, regions and
// users one by one, as far as the viewer may see them. Changes nothing.
#pragma once

#include <functional>
#include <vector>

#include "dpdk_port/port.h"
#include "libst/ipc/requests.h"
#include "libst/service/allowances.h"
#include "libst/service/client_table.h"
#include "libst/service/link_watch.h"
#include "libst/service/regions.h"

namespace stp::service {

struct Viewer {
  ClientId id = 0;  // 0: no client
  const ClientIdentity& identity;
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

  const port::Port& port_;
  const Node& node_;
  const ClientTable& clients_;
  const Regions& regions_;
  const Allowances& allow_;
  const LinkWatch& link_;
  std::function<std::vector<port::PortCounter>()> more_counters_;
};

}  // namespace stp::service
