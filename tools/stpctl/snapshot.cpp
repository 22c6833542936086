// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/snapshot.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "libst/service/budget.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {
namespace {

std::string remedy_for(int error) {
  switch (error) {
    case -ENOENT:
      return "there is no such socket: start stpd, or name its socket with --socket (a path has a "
             "'/' in it)";
    case -ECONNREFUSED:
      return "the socket exists, but no daemon listens on it: start stpd again";
    case -EACCES:
      return "this user may not open it: ask whoever runs stpd, or use sudo";
    case -ENAMETOOLONG:
      return "the path is too long for a socket";
    default:
      return std::strerror(-error);
  }
}

std::string why_silent(int error) {
  switch (error) {
    case -ECONNRESET:
      return "it has closed the connection: it has ended, has too many clients (then only "
             "administrators get in), or is of another version than stpctl " STP_VERSION;
    case -EPROTO:
      return "its answer is not understood: it is of another version than stpctl " STP_VERSION;
    default:
      return std::strerror(-error);
  }
}

}  // namespace

DaemonClient::DaemonClient(std::string socket, std::chrono::milliseconds patience)
    : path_(std::move(socket)), patience_(patience) {
  const timeval time{.tv_sec = patience.count() / 1'000,
                     .tv_usec = patience.count() % 1'000 * 1'000};
  const auto error = service::connect_to_watch(path_, socket_, time);
  if (error == -EAGAIN) throw Silence(silence());
  if (error != 0) throw Failure("no daemon at " + path_ + ": " + remedy_for(error));
  // Ignores errors: without this timeout stpctl waits for as long as the daemon takes.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

std::string DaemonClient::silence() const {
  const auto tenths = patience_.count() / 100;
  return "daemon at " + path_ + ": it has not answered for " + std::to_string(tenths / 10) +
         (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) +
         " seconds: is it stopped, or its machine overloaded?";
}

int DaemonClient::ask(service::Request request, service::Reply& reply, std::span<const int> fds) {
  request.version = service::kProtocolVersion;
  auto error = service::send_request(socket_.get(), request, fds);
  std::vector<service::UniqueFd> none;
  if (error == 0) error = service::receive_reply(socket_.get(), reply, none);
  if (error == -EAGAIN) throw Silence(silence());
  if (error != 0) throw Failure("daemon at " + path_ + ": " + why_silent(error));
  if (reply.result == -EPROTONOSUPPORT)
    throw Failure("daemon at " + path_ + ": " + why_silent(-EPROTO));
  return reply.result;
}

int DaemonClient::ask(service::RequestKind kind, service::Reply& reply) {
  service::Request request{};
  request.kind = kind;
  return ask(request, reply);
}

namespace {

using service::Reply;
using service::RequestKind;

// Asks for the next entry of a list. Returns false at the end of the list.
bool ask_for_entry(DaemonClient& daemon, const service::Request& request, Reply& reply) {
  const auto result = daemon.ask(request, reply);
  if (result == -ENOENT) return false;
  if (result != 0) throw Failure("daemon at " + daemon.socket() + ": " + std::strerror(-result));
  return true;
}

// Asks one shard for entry after entry, and calls `take` for each reply.
template <typename Take>
void walk(DaemonClient& daemon, RequestKind kind, unsigned shard, Take&& take) {
  service::Request request{};
  request.kind = kind;
  request.shard = shard;
  Reply reply;
  while (ask_for_entry(daemon, request, reply)) {
    take(reply);
    request.cursor = reply.admin.next;
  }
}

template <typename Take>
void walk_all(DaemonClient& daemon, const Link& link, RequestKind kind, Take&& take) {
  for (unsigned shard = 0; shard < link.shards.size(); ++shard)
    walk(daemon, kind, shard, [&](const Reply& reply) { take(reply, shard); });
}

Reply ask_of_link(DaemonClient& daemon, unsigned shard,
                  RequestKind kind = RequestKind::kAdminLink) {
  service::Request request{};
  request.kind = kind;
  request.shard = shard;
  Reply reply;
  if (const auto result = daemon.ask(request, reply); result != 0)
    throw Failure("daemon at " + daemon.socket() + ": " + std::strerror(-result));
  return reply;
}

// Adds the counters of a shard. Only the first shard has those of the link as a whole.
void add_counters(DaemonClient& daemon, unsigned shard, std::vector<CounterValue>& all) {
  service::Request request{};
  request.kind = RequestKind::kStats;
  request.shard = shard;
  Reply reply;
  for (; ask_for_entry(daemon, request, reply); ++request.index) {
    const auto name = service::text_of(reply.text);
    auto at = std::ranges::find(all, name, &CounterValue::name);
    if (at == all.end()) at = all.insert(at, {.name = std::string(name), .value = 0, .shards = {}});
    at->value += reply.value;
    at->shards.push_back(reply.value);
  }
}

Owner owner_of(const Reply& reply) {
  return {reply.admin.pid, reply.admin.uid};
}

// An stpd of an earlier version tells the MAC address only.
std::string peer_of(const Reply& reply) {
  const auto named = std::string(service::text_of(reply.text));
  const auto mac = port::to_string(MacAddr::from_u64(reply.mac));
  return named.empty() || named == "[" + mac + "]" ? mac : named;
}

Connection connection_of(const Reply& reply, unsigned shard) {
  const auto& entry = reply.admin;
  return {.owner = owner_of(reply),
          .state = static_cast<VcState>(reply.state),
          .error = static_cast<int>(reply.error),
          .passive = entry.passive != 0,
          .accepted = entry.accepted != 0,
          .connectionless = entry.connectionless != 0,
          .shard = shard + 1,
          .uport = entry.uport,
          .local_port = reply.local_port,
          .peer_port = reply.remote_port,
          .peer = peer_of(reply),
          .peer_mac = port::to_string(MacAddr::from_u64(reply.mac)),
          .max_stu = std::min(reply.local_max_stu, reply.remote_max_stu),
          .slots = reply.remote_slots,
          .credit = entry.credit,
          .round_trip = entry.round_trip,
          .traffic = {.rx_control = entry.rx_control,
                      .rx_data_bytes = entry.rx_data_bytes,
                      .tx_control = entry.tx_control,
                      .tx_data_bytes = entry.tx_data_bytes}};
}

Region region_of(const Reply& reply, unsigned shard) {
  const auto& entry = reply.admin;
  return {.owner = owner_of(reply),
          .id = reply.region,
          .bytes = entry.bytes,
          .direction = static_cast<Direction>(entry.direction),
          .shard = shard + 1,
          .base = entry.base,
          .count = entry.count,
          .bufsize = entry.bufsize,
          .mx_count = entry.mx_count,
          .unmapping = entry.unmapping != 0};
}

}  // namespace

Link read_link(DaemonClient& daemon) {
  const auto reply = ask_of_link(daemon, 0);
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
            .trouble = std::string(service::text_of(entry.trouble)),
            .steering = {},
            .shards = {{.connections = entry.connections, .regions = entry.regions}}};
  if (reply.ipv4 != 0) link.address = port::to_string(port::Ipv4{reply.ipv4});
  if (reply.shards > 1) {
    const auto steered = ask_of_link(daemon, 0, RequestKind::kAdminSteering);
    link.steering = std::string(service::text_of(steered.admin.trouble));
  }
  for (unsigned shard = 1; shard < reply.shards; ++shard) {
    const auto own = ask_of_link(daemon, shard);
    link.shards.push_back({.connections = own.admin.connections, .regions = own.admin.regions});
    link.connections += own.admin.connections;
    link.regions += own.admin.regions;
  }
  return link;
}

std::vector<Connection> read_connections(DaemonClient& daemon, const Link& link) {
  std::vector<Connection> all;
  walk_all(daemon, link, RequestKind::kAdminConnection, [&](const Reply& reply, unsigned shard) {
    if (reply.vc != kNoneId) all.push_back(connection_of(reply, shard));
  });
  return all;
}

std::vector<Region> read_regions(DaemonClient& daemon, const Link& link) {
  std::vector<Region> all;
  walk_all(daemon, link, RequestKind::kAdminRegion, [&](const Reply& reply, unsigned shard) {
    if (reply.region != kNoneId) all.push_back(region_of(reply, shard));
  });
  return all;
}

// The shards of a link have one set of budgets.
std::vector<User> read_users(DaemonClient& daemon, const Link& /*link*/) {
  std::vector<User> all;
  walk(daemon, RequestKind::kAdminUser, 0, [&](const Reply& reply) {
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

std::vector<CounterValue> read_counters(DaemonClient& daemon, const Link& link) {
  std::vector<CounterValue> all;
  for (unsigned shard = 0; shard < link.shards.size(); ++shard) add_counters(daemon, shard, all);
  for (auto& counter : all)
    if (counter.shards.size() != link.shards.size()) counter.shards.clear();
  return all;
}

}  // namespace stp::stpctl
