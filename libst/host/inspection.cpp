// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/inspection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/host/bells.h"
#include "libst/host/client.h"
#include "libst/host/endpoints.h"
#include "libst/ipc/requests.h"
#include "stp/base/work_meter.h"

namespace stp::host {

namespace {

constexpr Time kInterval = 10 * kMillisecond;
// The most changes that wait for next_change(). Beyond that, the oldest is dropped and counted.
constexpr std::size_t kKept = 8;

}  // namespace

LinkWatch::LinkWatch(port::Port& port, ClientTable& clients, Wakes& wakes, Time now)
    : port_(port),
      clients_(clients),
      wakes_(wakes),
      state_(port.state()),
      address_(port.info().address),
      since_(now) {
  if (state_ != port::LinkState::kUp) note();
}

void LinkWatch::look(Time now) {
  next_look_ = now + kInterval;
  const auto state = port_.state();
  const auto address = port_.info().address;
  if (state == state_ && address == address_) return;
  address_ = address;
  if (state != state_) {
    state_ = state;
    since_ = now;
    ++changes_;
    note();
  }
  for (auto& [id, client] : clients_) {
    work::count("clients");
    greet(client);
    wakes_.page(client);
  }
}

void LinkWatch::note() {
  if (noted_.size() == kKept) {
    noted_.pop_front();
    ++unnoted_;
  }
  noted_.push_back({state_, port_.trouble()});
}

void LinkWatch::greet(Client& client) const {
  auto& page = client.page();
  page.link_ipv4.store(address_ ? address_->value : 0, std::memory_order_relaxed);
  page.link_state.store(static_cast<std::uint32_t>(state_), std::memory_order_relaxed);
  page.link_changes.store(changes_, std::memory_order_release);
}

void LinkWatch::answer(ask::LinkState::Reply& reply, Time now) const {
  const auto& info = port_.info();
  reply.state = static_cast<std::uint32_t>(state_);
  reply.changes = changes_;
  reply.age = now - since_;
  reply.mtu = info.mtu;
  reply.megabits = info.megabits;
  if (info.address) reply.ipv4 = info.address->value;
}

std::optional<LinkChange> LinkWatch::next_change() {
  if (noted_.empty()) return std::nullopt;
  auto change = std::move(noted_.front());
  noted_.pop_front();
  change.passed_over = std::exchange(unnoted_, 0);
  return change;
}

namespace {

// Bounds the work of one request, because the link waits meanwhile. After skipping this many
// entries that the viewer may not see, the answer has no entry, only the cursor to go on from.
constexpr int kPassedOver = 512;

template <typename Entry>
void set_owner(Entry& entry, const Client& owner) {
  entry.pid = static_cast<std::uint32_t>(owner.identity.pid);
  entry.uid = owner.identity.uid;
}

bool may_see(const Viewer& viewer, uid_t owner) {
  const auto user = viewer.identity.uid;
  return viewer.identity.administrator || (user != ipc::kUnknownUser && user == owner);
}

bool may_see(const Viewer& viewer, const Client& owner) {
  return viewer.id == owner.id || may_see(viewer, owner.identity.uid);
}

}  // namespace

std::vector<port::PortCounter> Inspection::all_counters() const {
  std::vector<port::PortCounter> all;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    all.push_back({Counters::name(counter), node_.counters().get(counter)});
  }
  const auto others = other_counters();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

int Inspection::answer(const Viewer& viewer, const ask::AdminLink& /*request*/,
                       ask::AdminLink::Reply& reply) const {
  const auto& info = port_.info();
  ipc::set_text(reply.link, info.link);
  ipc::set_text(reply.device, info.device);
  ipc::set_text(reply.driver, info.driver);
  ipc::set_text(reply.trouble, all_trouble());
  reply.mac = info.mac.to_u64();
  reply.mtu = info.mtu;
  reply.max_stu = info.max_stu;
  reply.shards = info.shards ? info.shards->count() : 1;
  if (info.address) reply.ipv4 = info.address->value;
  reply.state = static_cast<std::uint32_t>(port_.state());
  reply.link_up = port_.link_up() ? 1 : 0;
  reply.clients = static_cast<std::uint32_t>(clients_.size());
  reply.connections = static_cast<std::uint32_t>(node_.vc_count());
  reply.regions = static_cast<std::uint32_t>(regions_.count());
  reply.administrator = viewer.identity.administrator ? 1 : 0;
  return 0;
}

std::string Inspection::all_trouble() const {
  auto text = port_.trouble();
  const auto more = more_trouble_ ? more_trouble_() : "";
  if (!text.empty() && !more.empty()) text += "; ";
  return text + more;
}

int Inspection::answer(const Viewer& /*viewer*/, const ask::AdminSteering& /*request*/,
                       ask::AdminSteering::Reply& reply) const {
  ipc::set_text(reply.steering, port_.steering());
  return 0;
}

// The cursor is a local Port, which belongs to one connection only.
int Inspection::answer(const Viewer& viewer, const ask::AdminConnection& request,
                       ask::AdminConnection::Reply& reply) const {
  VcInfo info{};
  reply.next = request.cursor;
  for (int passed = 0; passed < kPassedOver; ++passed) {
    if (reply.next > wire::kMaxPort) return -ENOENT;
    const auto vc = node_.vc_after(static_cast<std::uint16_t>(reply.next));
    if (vc == kNoneId || node_.vc_info(vc, info) != 0) return -ENOENT;
    reply.next = info.local_port;
    const auto* const owner = clients_.find(client_in(info.cookie));
    if (owner == nullptr || !may_see(viewer, *owner)) continue;
    reply.facts = facts_of(vc, info);
    ipc::set_text(reply.peer, port_.name_of_station(info.peer_mac));
    reply.facts.local_key = reply.facts.remote_key = 0;  // whoever knows them could forge frames
    reply.facts.option = {};                             // private data of the two programs
    set_owner(reply, *owner);
    reply.uport = info.uport;
    reply.passive = info.passive ? 1 : 0;
    reply.connectionless = info.connectionless ? 1 : 0;
    reply.accepted = owner->channels.of(vc) != nullptr ? 1 : 0;
    reply.yields = info.yields ? *info.yields : ask::AdminConnection::kNotAsked;
    reply.credit = info.credit;
    reply.round_trip = info.round_trip;
    reply.rx_control = info.traffic.rx_control;
    reply.rx_data_bytes = info.traffic.rx_data_bytes;
    reply.tx_control = info.traffic.tx_control;
    reply.tx_data_bytes = info.traffic.tx_data_bytes;
    return 0;
  }
  return 0;
}

int Inspection::answer(const Viewer& viewer, const ask::AdminRegion& request,
                       ask::AdminRegion::Reply& reply) const {
  reply.next = request.cursor;
  for (int passed = 0; passed < kPassedOver; ++passed) {
    const auto found = regions_.after(reply.next);
    if (!found) return -ENOENT;
    reply.next = found->first;
    const auto& owner = *clients_.find(found->second);
    if (!may_see(viewer, owner)) continue;
    const auto& region = owner.regions.at(found->first);
    EndpointConfig config;
    node_.endpoint_config(region.endpoint, config);
    reply.region = found->first;
    reply.endpoint = region.endpoint;
    set_owner(reply, owner);
    reply.direction = static_cast<std::uint32_t>(region.direction);
    reply.base = region.base;
    reply.bytes = region.bytes;
    reply.bufsize = config.bufsize;
    reply.count = static_cast<std::uint32_t>(region.bytes >> config.bufsize);
    reply.unmapping = region.state == RegionState::kBound ? 0 : 1;
    reply.mx_count = static_cast<std::uint32_t>(owner.mxs.count_of_region(found->first));
    return 0;
  }
  return 0;
}

// The cursor is the lowest uid to return.
int Inspection::answer(const Viewer& viewer, const ask::AdminUser& request,
                       ask::AdminUser::Reply& reply) const {
  static_assert(kResources <= ipc::kMaxBudgets);
  if (request.cursor > ipc::kUnknownUser) return -ENOENT;
  const auto from = static_cast<uid_t>(request.cursor);
  const auto user = allow_.budgets().after(from == 0 ? std::nullopt : std::optional(from - 1));
  if (!user) return -ENOENT;
  reply.next = std::uint64_t{user->uid} + 1;
  if (!may_see(viewer, user->uid)) return 0;
  reply.shown = 1;
  reply.uid = user->uid;
  reply.trusted = user->trusted ? 1 : 0;
  std::ranges::copy(user->used, reply.used);
  std::ranges::copy(user->most, reply.most);
  return 0;
}

// The Node's counters first, then the others.
int Inspection::answer(const Viewer& /*viewer*/, const ask::Stats& request,
                       ask::Stats::Reply& reply) const {
  if (request.index < kCounterCount) {
    const auto counter = static_cast<Counter>(request.index);
    ipc::set_text(reply.name, Counters::name(counter));
    reply.value = node_.counters().get(counter);
    return 0;
  }
  const auto counters = other_counters();
  const auto index = request.index - kCounterCount;
  if (index >= counters.size()) return -ENOENT;
  ipc::set_text(reply.name, counters[index].name);
  reply.value = counters[index].value;
  return 0;
}

// Returns the link's counters, then those of the owner of this Service (add_counters).
std::vector<port::PortCounter> Inspection::other_counters() const {
  auto counters = port_.counters();
  if (port_.info().shard == 0) counters.push_back({"link_changes", link_.changes()});
  if (!more_counters_) return counters;
  const auto more = more_counters_();
  counters.insert(counters.end(), more.begin(), more.end());
  return counters;
}

}  // namespace stp::host
