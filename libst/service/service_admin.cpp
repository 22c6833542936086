// SPDX-License-Identifier: BSD-3-Clause
// Answers the requests of stpctl, which change nothing. Also identify() and add_counters().
#include <algorithm>
#include <cerrno>

#include "libst/service/service_impl.h"
#include "libst/service/text_field.h"

namespace stp::service {
namespace {

// Bounds the work of one request, because the link waits meanwhile. After skipping this many
// entries that the viewer may not see, the answer has no entry, only the cursor to go on from.
constexpr int kPassedOver = 512;

void set_owner(AdminEntry& entry, const Client& owner) {
  entry.pid = static_cast<std::uint32_t>(owner.identity.pid);
  entry.uid = owner.identity.uid;
}

ClientId owner_of(const VcInfo& info) {
  return static_cast<ClientId>(info.cookie >> 32);
}

}  // namespace

void Service::identify(ClientId id, const ClientIdentity& identity) {
  auto* const client = impl_->client(id);
  if (client == nullptr) return;
  client->identity = identity;
  impl_->pay_by(*client, identity.uid);
}

void Service::add_counters(std::function<std::vector<port::PortCounter>()> counters) {
  impl_->more_counters = std::move(counters);
}

std::vector<port::PortCounter> Service::all_counters() const {
  std::vector<port::PortCounter> all;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    all.push_back({Counters::name(counter), impl_->node.counters().get(counter)});
  }
  const auto others = impl_->other_counters();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

bool Service::Impl::may_see(const Viewer& viewer, uid_t owner) {
  const auto user = viewer.identity.uid;
  return viewer.identity.administrator || (user != kUnknownUser && user == owner);
}

bool Service::Impl::may_see(const Viewer& viewer, const Client& owner) {
  return viewer.id == owner.id || may_see(viewer, owner.identity.uid);
}

void Service::watch(const ClientIdentity& viewer, const Request& request, Reply& reply) {
  reply = {};
  reply.version = kProtocolVersion;
  impl_->guarded(reply,
                 [&] { return impl_->watch({.id = 0, .identity = viewer}, request, reply); });
}

int Service::Impl::watch(const Viewer& viewer, const Request& request, Reply& reply) const {
  switch (request.kind) {
    case RequestKind::kStats:
      return stats(request, reply);
    case RequestKind::kAdminConnection:
      return admin_connection(viewer, request, reply);
    case RequestKind::kAdminRegion:
      return admin_region(viewer, request, reply);
    case RequestKind::kAdminUser:
      return admin_user(viewer, request, reply);
    default:
      admin_link(viewer, reply);
      return 0;
  }
}

void Service::Impl::admin_link(const Viewer& viewer, Reply& reply) const {
  const auto& info = port->info();
  set_text(reply.text, info.link);
  set_text(reply.admin.device, info.device);
  set_text(reply.admin.driver, info.driver);
  set_text(reply.admin.trouble, port->trouble());
  reply.mac = info.mac.to_u64();
  reply.mtu = info.mtu;
  reply.max_stu = info.max_stu;
  reply.shards = info.shards ? info.shards->count() : 1;
  if (info.address) reply.ipv4 = info.address->value;
  reply.state = static_cast<std::uint32_t>(port->state());
  reply.admin.link_up = port->link_up() ? 1 : 0;
  reply.admin.clients = static_cast<std::uint32_t>(clients.size());
  reply.admin.connections = static_cast<std::uint32_t>(node.vc_count());
  reply.admin.regions = static_cast<std::uint32_t>(region_owner.size());
  reply.admin.administrator = viewer.identity.administrator ? 1 : 0;
}

// The cursor is a local Port, which belongs to one connection only.
int Service::Impl::admin_connection(const Viewer& viewer, const Request& request,
                                    Reply& reply) const {
  VcInfo info{};
  auto& entry = reply.admin;
  entry.next = request.cursor;
  for (int passed = 0; passed < kPassedOver; ++passed) {
    if (entry.next > wire::kMaxPort) return -ENOENT;
    const auto vc = node.vc_after(static_cast<std::uint16_t>(entry.next));
    if (vc == kNoneId || node.vc_info(vc, info) != 0) return -ENOENT;
    entry.next = info.local_port;
    const auto owner = clients.find(owner_of(info));
    if (owner == clients.end() || !may_see(viewer, owner->second)) continue;
    set_vc_info(vc, info, reply);
    reply.local_key = reply.remote_key = 0;  // whoever knows the Keys could forge frames
    reply.option = {};                       // private data of the two programs
    set_owner(entry, owner->second);
    entry.uport = info.uport;
    entry.passive = info.passive ? 1 : 0;
    entry.connectionless = info.connectionless ? 1 : 0;
    entry.accepted = owner->second.vcs.contains(vc) ? 1 : 0;
    entry.credit = info.credit;
    entry.round_trip = info.round_trip;
    entry.rx_control = info.traffic.rx_control;
    entry.rx_data_bytes = info.traffic.rx_data_bytes;
    entry.tx_control = info.traffic.tx_control;
    entry.tx_data_bytes = info.traffic.tx_data_bytes;
    return 0;
  }
  return 0;
}

int Service::Impl::admin_region(const Viewer& viewer, const Request& request, Reply& reply) const {
  auto& entry = reply.admin;
  auto at = region_owner.upper_bound(request.cursor);
  for (int passed = 0; passed < kPassedOver; ++passed, ++at) {
    if (at == region_owner.end()) return -ENOENT;
    entry.next = at->first;
    const auto& owner = clients.at(at->second);
    if (!may_see(viewer, owner)) continue;
    const auto& region = owner.regions.at(at->first);
    EndpointConfig config;
    node.endpoint_config(region.endpoint, config);
    reply.region = at->first;
    reply.endpoint = region.endpoint;
    set_owner(entry, owner);
    entry.direction = static_cast<std::uint32_t>(region.direction);
    entry.base = region.base;
    entry.bytes = region.bytes;
    entry.bufsize = config.bufsize;
    entry.count = static_cast<std::uint32_t>(region.bytes >> config.bufsize);
    entry.unmapping = region.state == Region::State::kBound ? 0 : 1;
    entry.mx_count = static_cast<std::uint32_t>(region.mxs.size());
    return 0;
  }
  return 0;
}

// The cursor is the lowest uid to return.
int Service::Impl::admin_user(const Viewer& viewer, const Request& request, Reply& reply) const {
  static_assert(kResources <= kMaxBudgets);
  auto& entry = reply.admin;
  if (request.cursor > kUnknownUser) return -ENOENT;
  const auto from = static_cast<uid_t>(request.cursor);
  const auto user = budgets->after(from == 0 ? std::nullopt : std::optional(from - 1));
  if (!user) return -ENOENT;
  entry.next = std::uint64_t{user->uid} + 1;
  if (!may_see(viewer, user->uid)) return 0;
  entry.shown = 1;
  entry.uid = user->uid;
  entry.trusted = user->trusted ? 1 : 0;
  std::ranges::copy(user->used, entry.used);
  std::ranges::copy(user->most, entry.most);
  return 0;
}

}  // namespace stp::service
