// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"
#include "libst/service/budget.h"
#include "libst/service/text_field.h"
#include "tools/stpctl/failure.h"

namespace stp::stpctl {
namespace {

using service::Reply;
using service::RequestKind;

// Asks for entry after entry; `take` has each.
template <typename Take>
void walk(DaemonClient& daemon, RequestKind kind, Take&& take) {
  service::Request request{};
  request.kind = kind;
  Reply reply;
  for (;;) {
    const auto result = daemon.ask(request, reply);
    if (result == -ENOENT) return;
    if (result != 0) throw Failure("daemon at " + daemon.socket() + ": " + std::strerror(-result));
    take(reply);
    request.cursor = reply.admin.next;
  }
}

Owner owner_of(const Reply& reply) {
  return {reply.admin.pid, reply.admin.uid};
}

Connection connection_of(const Reply& reply) {
  const auto& entry = reply.admin;
  return {.owner = owner_of(reply),
          .state = static_cast<VcState>(reply.state),
          .error = static_cast<int>(reply.error),
          .passive = entry.passive != 0,
          .accepted = entry.accepted != 0,
          .connectionless = entry.connectionless != 0,
          .uport = entry.uport,
          .local_port = reply.local_port,
          .peer_port = reply.remote_port,
          .peer = port::to_string(MacAddr::from_u64(reply.mac)),
          .max_stu = std::min(reply.local_max_stu, reply.remote_max_stu),
          .slots = reply.remote_slots,
          .credit = entry.credit,
          .round_trip = entry.round_trip,
          .traffic = {.rx_control = entry.rx_control,
                      .rx_data_bytes = entry.rx_data_bytes,
                      .tx_control = entry.tx_control,
                      .tx_data_bytes = entry.tx_data_bytes}};
}

Region region_of(const Reply& reply) {
  const auto& entry = reply.admin;
  return {.owner = owner_of(reply),
          .id = reply.region,
          .bytes = entry.bytes,
          .direction = static_cast<Direction>(entry.direction),
          .base = entry.base,
          .count = entry.count,
          .bufsize = entry.bufsize,
          .mx_count = entry.mx_count,
          .unmapping = entry.unmapping != 0};
}

}  // namespace

Link read_link(DaemonClient& daemon) {
  Reply reply;
  if (const auto result = daemon.ask(RequestKind::kAdminLink, reply); result != 0)
    throw Failure("daemon at " + daemon.socket() + ": " + std::strerror(-result));
  const auto& entry = reply.admin;
  Link link{.socket = daemon.socket(),
            .name = std::string(service::text_of(reply.text)),
            .device = std::string(service::text_of(entry.device)),
            .driver = std::string(service::text_of(entry.driver)),
            .mac = port::to_string(MacAddr::from_u64(reply.mac)),
            .address = {},
            .mtu = reply.mtu,
            .max_stu = reply.max_stu,
            .up = entry.link_up != 0,
            .state = std::string(port::name_of(static_cast<port::LinkState>(reply.state))),
            .clients = entry.clients,
            .connections = entry.connections,
            .regions = entry.regions,
            .administrator = entry.administrator != 0,
            .trouble = std::string(service::text_of(entry.trouble))};
  if (reply.ipv4 != 0) link.address = port::to_string(port::Ipv4{reply.ipv4});
  return link;
}

std::vector<Connection> read_connections(DaemonClient& daemon) {
  std::vector<Connection> all;
  walk(daemon, RequestKind::kAdminConnection, [&](const Reply& reply) {
    if (reply.vc != kNoneId) all.push_back(connection_of(reply));
  });
  return all;
}

std::vector<Region> read_regions(DaemonClient& daemon) {
  std::vector<Region> all;
  walk(daemon, RequestKind::kAdminRegion, [&](const Reply& reply) {
    if (reply.region != kNoneId) all.push_back(region_of(reply));
  });
  return all;
}

std::vector<User> read_users(DaemonClient& daemon) {
  std::vector<User> all;
  walk(daemon, RequestKind::kAdminUser, [&](const Reply& reply) {
    const auto& entry = reply.admin;
    if (entry.shown == 0) return;
    auto& user = all.emplace_back();
    user.uid = entry.uid;
    user.trusted = entry.trusted != 0;
    for (std::size_t i = 0; i < service::kResources; ++i) {
      const auto most = entry.most[i];
      user.budgets.push_back({service::describe(static_cast<service::Resource>(i)).name,
                              entry.used[i],
                              most == service::kNoBound ? std::nullopt : std::optional(most)});
    }
  });
  return all;
}

std::vector<CounterValue> read_counters(DaemonClient& daemon) {
  std::vector<CounterValue> all;
  service::Request request{};
  request.kind = RequestKind::kStats;
  Reply reply;
  for (; daemon.ask(request, reply) == 0; ++request.index)
    all.push_back({std::string(service::text_of(reply.text)), reply.value});
  return all;
}

}  // namespace stp::stpctl
