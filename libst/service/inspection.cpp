// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/inspection.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "libst/ipc/requests.h"
#include "libst/service/admin.h"
#include "libst/service/endpoints.h"

namespace stp::service {
namespace {

// Bounds the work of one request, because the link waits meanwhile. After skipping this many
// entries that the viewer may not see, the answer has no entry, only the cursor to go on from.
constexpr int kPassedOver = 512;

void set_owner(AdminEntry& entry, const Client& owner) {
  entry.pid = static_cast<std::uint32_t>(owner.identity.pid);
  entry.uid = owner.identity.uid;
}

bool may_see(const Viewer& viewer, uid_t owner) {
  const auto user = viewer.identity.uid;
  return viewer.identity.administrator || (user != kUnknownUser && user == owner);
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

int Inspection::answer(const Viewer& viewer, const Request& request, Reply& reply) const {
  switch (request.kind) {
    case RequestKind::kStats:
      return stats(request, reply);
    case RequestKind::kAdminConnection:
      return connection(viewer, request, reply);
    case RequestKind::kAdminRegion:
      return region(viewer, request, reply);
    case RequestKind::kAdminUser:
      return user(viewer, request, reply);
    case RequestKind::kAdminSteering:
      set_text(reply.admin.trouble, port_.steering());
      return 0;
    default:
      link(viewer, reply);
      return 0;
  }
}

void Inspection::link(const Viewer& viewer, Reply& reply) const {
  const auto& info = port_.info();
  set_text(reply.text, info.link);
  set_text(reply.admin.device, info.device);
  set_text(reply.admin.driver, info.driver);
  set_text(reply.admin.trouble, port_.trouble());
  reply.mac = info.mac.to_u64();
  reply.mtu = info.mtu;
  reply.max_stu = info.max_stu;
  reply.shards = info.shards ? info.shards->count() : 1;
  if (info.address) reply.ipv4 = info.address->value;
  reply.state = static_cast<std::uint32_t>(port_.state());
  reply.admin.link_up = port_.link_up() ? 1 : 0;
  reply.admin.clients = static_cast<std::uint32_t>(clients_.size());
  reply.admin.connections = static_cast<std::uint32_t>(node_.vc_count());
  reply.admin.regions = static_cast<std::uint32_t>(regions_.count());
  reply.admin.administrator = viewer.identity.administrator ? 1 : 0;
}

// The cursor is a local Port, which belongs to one connection only.
int Inspection::connection(const Viewer& viewer, const Request& request, Reply& reply) const {
  VcInfo info{};
  auto& entry = reply.admin;
  entry.next = request.cursor;
  for (int passed = 0; passed < kPassedOver; ++passed) {
    if (entry.next > wire::kMaxPort) return -ENOENT;
    const auto vc = node_.vc_after(static_cast<std::uint16_t>(entry.next));
    if (vc == kNoneId || node_.vc_info(vc, info) != 0) return -ENOENT;
    entry.next = info.local_port;
    const auto* const owner = clients_.find(client_in(info.cookie));
    if (owner == nullptr || !may_see(viewer, *owner)) continue;
    set_vc_info(vc, info, reply);
    set_text(reply.text, port_.name_of_station(info.peer_mac));
    reply.local_key = reply.remote_key = 0;  // whoever knows the Keys could forge frames
    reply.option = {};                       // private data of the two programs
    set_owner(entry, *owner);
    entry.uport = info.uport;
    entry.passive = info.passive ? 1 : 0;
    entry.connectionless = info.connectionless ? 1 : 0;
    entry.accepted = owner->channels.of(vc) != nullptr ? 1 : 0;
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

int Inspection::region(const Viewer& viewer, const Request& request, Reply& reply) const {
  auto& entry = reply.admin;
  entry.next = request.cursor;
  for (int passed = 0; passed < kPassedOver; ++passed) {
    const auto found = regions_.after(entry.next);
    if (!found) return -ENOENT;
    entry.next = found->first;
    const auto& owner = *clients_.find(found->second);
    if (!may_see(viewer, owner)) continue;
    const auto& region = owner.regions.at(found->first);
    EndpointConfig config;
    node_.endpoint_config(region.endpoint, config);
    reply.region = found->first;
    reply.endpoint = region.endpoint;
    set_owner(entry, owner);
    entry.direction = static_cast<std::uint32_t>(region.direction);
    entry.base = region.base;
    entry.bytes = region.bytes;
    entry.bufsize = config.bufsize;
    entry.count = static_cast<std::uint32_t>(region.bytes >> config.bufsize);
    entry.unmapping = region.state == RegionState::kBound ? 0 : 1;
    entry.mx_count = static_cast<std::uint32_t>(owner.mxs.count_of_region(found->first));
    return 0;
  }
  return 0;
}

// The cursor is the lowest uid to return.
int Inspection::user(const Viewer& viewer, const Request& request, Reply& reply) const {
  static_assert(kResources <= kMaxBudgets);
  auto& entry = reply.admin;
  if (request.cursor > kUnknownUser) return -ENOENT;
  const auto from = static_cast<uid_t>(request.cursor);
  const auto user = allow_.budgets().after(from == 0 ? std::nullopt : std::optional(from - 1));
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

// The Node's counters first, then the others.
int Inspection::stats(const Request& request, Reply& reply) const {
  if (request.index < kCounterCount) {
    const auto counter = static_cast<Counter>(request.index);
    set_text(reply.text, Counters::name(counter));
    reply.value = node_.counters().get(counter);
    return 0;
  }
  const auto counters = other_counters();
  const auto index = request.index - kCounterCount;
  if (index >= counters.size()) return -ENOENT;
  set_text(reply.text, counters[index].name);
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

namespace {

// Checks for a regular file that is open for writing. AT_STATX_DONT_SYNC uses what the kernel
// knows: asking the file system, for example a FUSE server, could block.
bool may_be_written(int file) {
  struct statx status {};
  if (::statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
      !S_ISREG(status.stx_mode))
    return false;
  const auto mode = ::fcntl(file, F_GETFL) & O_ACCMODE;
  return mode == O_WRONLY || mode == O_RDWR;
}

}  // namespace

int answer_trace(TraceControl* control, ClientId client, bool administrator, const Request& request,
                 std::span<UniqueFd> fds, Reply& reply) {
  if (!administrator) return -EPERM;
  if (control == nullptr) return -EOPNOTSUPP;
  if (request.kind == RequestKind::kTraceStop) return control->stop();
  if (request.kind == RequestKind::kTraceStatus) return control->status(reply.admin);
  // A pipe or a socket could block the writer until somebody reads from it.
  if (fds.size() != 1 || !may_be_written(fds[0].get())) return -EINVAL;
  return control->start(request.trace, client, fds[0]);
}

}  // namespace stp::service
