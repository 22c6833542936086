// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/snapshot.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/owners.h"
#include "libst/host/budgets.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {
namespace {

std::string remedy_for(const std::string& path, int error) {
  if (const auto fault = port::why_no_socket(path, ipc::kDefaultSocket); !fault.empty())
    return fault;
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
      return "it has closed the connection: it has ended, or is of another version than "
             "stpctl " STP_VERSION;
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
  std::string stranger;
  const auto error = ipc::connect_to_watch(path_, socket_, time, &stranger);
  if (error == -EAGAIN) throw Silence(silence());
  if (!stranger.empty()) throw Failure("daemon at " + path_ + ": " + stranger);
  if (error != 0) throw Failure("no daemon at " + path_ + ": " + remedy_for(path_, error));
  // Ignores errors: without this timeout stpctl waits for as long as the daemon takes.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

void DaemonClient::await_answer() const {
  using Clock = std::chrono::steady_clock;
  constexpr int kSlice = 50;  // ms; a signal that comes before the wait is noticed then
  auto until = Clock::now() + patience_;
  bool was_interrupted = false;
  pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  while (::poll(&answer, 1, kSlice) <= 0) {
    if (interrupted() && !std::exchange(was_interrupted, true))
      until = std::min(until, Clock::now() + patience_ / 10);
    if (Clock::now() >= until) throw Silence(silence(was_interrupted));
  }
}

std::string DaemonClient::silence(bool was_interrupted) const {
  if (was_interrupted)
    return "daemon at " + path_ + ": interrupted, and it does not answer: is it stopped?";
  const auto tenths = patience_.count() / 100;
  return "daemon at " + path_ + ": it has not answered for " + std::to_string(tenths / 10) +
         (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) +
         " seconds: is it stopped, or its machine overloaded?";
}

int DaemonClient::exchange(const ipc::RequestMessage& request, ipc::ReplyMessage& reply,
                           std::span<const int> fds) {
  auto error = ipc::send_request(socket_.get(), request, fds);
  std::vector<os::UniqueFd> none;
  if (error == 0) await_answer();
  if (error == 0) error = ipc::receive_reply(socket_.get(), reply, none);
  if (error == -ECONNRESET) error = ipc::receive_refusal(socket_.get(), reply);
  if (error == -EAGAIN) throw Silence(silence());
  if (error != 0) throw Failure("daemon at " + path_ + ": " + why_silent(error));
  const auto result = reply.head.result;
  if (result == -EPROTONOSUPPORT || (result == 0 && reply.head.kind != request.head.kind))
    throw Failure("daemon at " + path_ + ": " + why_silent(-EPROTO));
  if (reply.head.kind == ipc::RequestKind::kNone)
    throw Failure("daemon at " + path_ + ": it has refused stpctl: " + std::string(reply.why()) +
                  "; administrators get in nevertheless");
  return result;
}

namespace {

// Asks for the next entry of a list. Returns false at the end of the list.
template <typename R>
bool ask_for_entry(DaemonClient& daemon, const R& request, typename R::Reply& reply,
                   unsigned shard) {
  const auto result = daemon.ask(request, reply, shard);
  if (result == -ENOENT) return false;
  if (result != 0) throw Failure("daemon at " + daemon.socket() + ": " + std::strerror(-result));
  return true;
}

// Asks one shard for entry after entry, and calls `take` for each reply.
template <typename R, typename Take>
void walk(DaemonClient& daemon, unsigned shard, Take&& take) {
  R request{.cursor = 0};
  typename R::Reply reply{};
  while (ask_for_entry(daemon, request, reply, shard)) {
    take(reply);
    request.cursor = reply.next;
  }
}

template <typename R, typename Take>
void walk_all(DaemonClient& daemon, const LinkReport& link, Take&& take) {
  for (unsigned shard = 0; shard < link.shards.size(); ++shard)
    walk<R>(daemon, shard, [&](const auto& reply) { take(reply, shard); });
}

template <typename R>
typename R::Reply ask_of_link(DaemonClient& daemon, unsigned shard) {
  typename R::Reply reply{};
  if (const auto result = daemon.ask(R{}, reply, shard); result != 0)
    throw Failure("daemon at " + daemon.socket() + ": " + std::strerror(-result));
  return reply;
}

// Adds the counters of a shard. Only the first shard has those of the link as a whole.
void add_counters(DaemonClient& daemon, unsigned shard, std::vector<CounterValue>& all) {
  ask::Stats::Reply reply{};
  for (ask::Stats next{.index = 0}; ask_for_entry(daemon, next, reply, shard); ++next.index) {
    const auto name = ipc::text_of(reply.name);
    auto at = std::ranges::find(all, name, &CounterValue::name);
    if (at == all.end()) at = all.insert(at, {.name = std::string(name), .value = 0, .shards = {}});
    at->value += reply.value;
    at->shards.push_back(reply.value);
  }
}

// A station without another name is named by its MAC address in brackets, which tables leave out.
std::string peer_of(const ask::AdminConnection::Reply& entry) {
  const auto named = std::string(ipc::text_of(entry.peer));
  const auto mac = port::to_string(MacAddr::from_u64(entry.facts.mac));
  return named.empty() || named == "[" + mac + "]" ? mac : named;
}

// What a peer has not told is 0.
std::optional<unsigned> max_stu_of(const ipc::VcFacts& facts) {
  const auto agreed = std::min(facts.local_max_stu, facts.remote_max_stu);
  return agreed != 0 ? std::optional(agreed) : std::nullopt;
}

// That a channel exists says nothing about a peer that was asked and has not answered.
std::optional<bool> accepted_of(const ask::AdminConnection::Reply& entry) {
  if (entry.connectionless != 0) return std::nullopt;
  if (entry.passive != 0) return entry.accepted != 0;
  if (static_cast<VcState>(entry.facts.state) == VcState::kConnecting) return std::nullopt;
  return entry.facts.remote_port != 0;
}

Connection connection_of(const ask::AdminConnection::Reply& entry, unsigned shard) {
  const auto& facts = entry.facts;
  return {
      .owner = {entry.pid, entry.uid},
      .state = static_cast<VcState>(facts.state),
      .error = static_cast<int>(facts.error),
      .passive = entry.passive != 0,
      .connectionless = entry.connectionless != 0,
      .accepted = accepted_of(entry),
      .yields = entry.yields == ask::AdminConnection::kNotAsked ? std::nullopt
                                                                : std::optional(entry.yields != 0),
      .shard = shard + 1,
      .uport = entry.uport,
      .local_port = facts.local_port,
      .peer_port = facts.remote_port,
      .peer = peer_of(entry),
      .peer_mac = port::to_string(MacAddr::from_u64(facts.mac)),
      .max_stu = max_stu_of(facts),
      .slots = facts.remote_slots,
      .credit = entry.credit,
      .round_trip = entry.round_trip != 0 ? std::optional<Time>(entry.round_trip) : std::nullopt,
      .traffic = {.rx_control = entry.rx_control,
                  .rx_data_bytes = entry.rx_data_bytes,
                  .tx_control = entry.tx_control,
                  .tx_data_bytes = entry.tx_data_bytes}};
}

Region region_of(const ask::AdminRegion::Reply& entry, unsigned shard) {
  return {.owner = {entry.pid, entry.uid},
          .id = entry.region,
          .bytes = entry.bytes,
          .direction = static_cast<Direction>(entry.direction),
          .shard = shard + 1,
          .base = entry.base,
          .count = entry.count,
          .bufsize = entry.bufsize,
          .mx_count = entry.mx_count,
          .unmapping = entry.unmapping != 0};
}

// A link over UDP or IP is called by its address, and a UDP port: [2001:db8::5]/8181. nullopt: it
// is none, or of IPv4, or the link has no address yet.
std::optional<std::string> ipv6_of(const std::string& device) {
  const auto end = device.find(']');
  if (!device.starts_with('[') || end == std::string::npos) return std::nullopt;
  const auto address = device.substr(1, end - 1);
  return address == "::" ? std::nullopt : std::optional(address);
}

}  // namespace

LinkReport read_link(DaemonClient& daemon) {
  const auto entry = ask_of_link<ask::AdminLink>(daemon, 0);
  LinkReport link{.socket = daemon.socket(),
                  .name = std::string(ipc::text_of(entry.link)),
                  .device = std::string(ipc::text_of(entry.device)),
                  .driver = std::string(ipc::text_of(entry.driver)),
                  .mac = port::to_string(MacAddr::from_u64(entry.mac)),
                  .address = {},
                  .mtu = entry.mtu,
                  .max_stu = entry.max_stu,
                  .up = entry.link_up != 0,
                  .state = std::string(port::name_of(static_cast<port::LinkState>(entry.state))),
                  .clients = entry.clients,
                  .connections = entry.connections,
                  .regions = entry.regions,
                  .administrator = entry.administrator != 0,
                  .trouble = std::string(ipc::text_of(entry.trouble)),
                  .steering = {},
                  .shards = {{.connections = entry.connections, .regions = entry.regions}}};
  link.address = ipv6_of(link.device);
  if (entry.ipv4 != 0) link.address = port::to_string(port::Ipv4{entry.ipv4});
  if (entry.shards > 1) {
    const auto steered = ask_of_link<ask::AdminSteering>(daemon, 0);
    link.steering = std::string(ipc::text_of(steered.steering));
  }
  for (unsigned shard = 1; shard < entry.shards; ++shard) {
    const auto own = ask_of_link<ask::AdminLink>(daemon, shard);
    link.shards.push_back({.connections = own.connections, .regions = own.regions});
    link.connections += own.connections;
    link.regions += own.regions;
  }
  return link;
}

std::vector<Connection> read_connections(DaemonClient& daemon, const LinkReport& link) {
  std::vector<Connection> all;
  walk_all<ask::AdminConnection>(daemon, link, [&](const auto& entry, unsigned shard) {
    if (entry.facts.vc != kNoneId) all.push_back(connection_of(entry, shard));
  });
  return all;
}

std::vector<Region> read_regions(DaemonClient& daemon, const LinkReport& link) {
  std::vector<Region> all;
  walk_all<ask::AdminRegion>(daemon, link, [&](const auto& entry, unsigned shard) {
    if (entry.region != kNoneId) all.push_back(region_of(entry, shard));
  });
  return all;
}

// The shards of a link have one set of budgets.
std::vector<User> read_users(DaemonClient& daemon, const LinkReport& /*link*/) {
  std::vector<User> all;
  walk<ask::AdminUser>(daemon, 0, [&](const auto& entry) {
    if (entry.shown == 0) return;
    auto& user = all.emplace_back();
    user.uid = entry.uid;
    user.trusted = entry.trusted != 0;
    for (std::size_t i = 0; i < host::kResources; ++i) {
      const auto most = entry.most[i];
      user.budgets.push_back({host::describe(static_cast<host::Resource>(i)).name, entry.used[i],
                              most == host::kNoBound ? std::nullopt : std::optional(most)});
    }
  });
  return all;
}

std::vector<CounterValue> read_counters(DaemonClient& daemon, const LinkReport& link) {
  std::vector<CounterValue> all;
  for (unsigned shard = 0; shard < link.shards.size(); ++shard) add_counters(daemon, shard, all);
  for (auto& counter : all)
    if (counter.shards.size() != link.shards.size()) counter.shards.clear();
  return all;
}

}  // namespace stp::stpctl
