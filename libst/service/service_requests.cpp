// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>

#include "libst/service/service_impl.h"
#include "libst/service/text_field.h"

namespace stp::service {

void Service::handle(ClientId id, const Request& request, Attachments& attachments, Reply& reply) {
  reply = {};
  reply.version = kProtocolVersion;
  auto* const client = impl_->client(id);
  if (client == nullptr || client->leaving) {
    reply.result = -EBADF;
  } else if (request.version != kProtocolVersion) {
    reply.result = -EPROTONOSUPPORT;
  } else {
    impl_->guarded(reply, [&] { return impl_->answer(*client, request, attachments, reply); });
  }
  impl_->handle_events();
  impl_->ring_own_bell();
}

int Service::Impl::over_quota(const char* option, std::uint64_t value) {
  if (answering)
    exceeded = std::string("this program has all that --") + option + ' ' + std::to_string(value) +
               " of stpd allows: raise it, then SIGHUP";
  return -EDQUOT;
}

int Service::Impl::over_budget(const Client& client, Resource resource) {
  if (answering) exceeded = client.account.refusal(resource);
  return -EDQUOT;
}

int Service::Impl::reserve(const Client& client, Resource resource, std::uint64_t amount,
                           Reservation& out) {
  return client.account.reserve(resource, amount, out) ? 0 : over_budget(client, resource);
}

int Service::Impl::reserve_port(const Client& client, Reservation& out) {
  if (client.ports.reserve(Resource::kConnections, 1, out)) return 0;
  if (answering)
    exceeded = "shard " + std::to_string(port->info().shard + 1) + ": " +
               client.ports.refusal(Resource::kConnections);
  return -EDQUOT;
}

int Service::Impl::answer(Client& client, const Request& request, Attachments& attachments,
                          Reply& reply) {
  switch (request.kind) {
    case RequestKind::kHello:
      return hello(client, attachments, reply);
    case RequestKind::kOpenEndpoint:
      return open_endpoint(client, request, reply);
    case RequestKind::kConfigure:
      return configure(client, request, reply);
    case RequestKind::kEndpointConfig:
      return endpoint_config(client, request, reply);
    case RequestKind::kCloseEndpoint:
      return close_endpoint(client, request.endpoint);
    case RequestKind::kListen:
      return listen(client, request);
    case RequestKind::kAccept:
      return accept(client, request.endpoint, attachments, reply);
    case RequestKind::kConnect:
      return connect(client, request, attachments, reply);
    case RequestKind::kBacklog:
      return backlog(client, request.endpoint, reply);
    case RequestKind::kDecide:
      return decide(client, request);
    case RequestKind::kOpenPort:
      return open_port(client, request.endpoint, attachments, reply);
    case RequestKind::kVcInfo:
      return vc_info(client, request.vc, reply);
    case RequestKind::kClose:
      return close(client, request);
    case RequestKind::kMap:
      return map(client, request, attachments, reply);
    case RequestKind::kUnmap:
      return unmap(client, request.region);
    case RequestKind::kAllocMx:
      return alloc_mx(client, request, reply);
    case RequestKind::kFreeMx:
      return free_mx(client, request);
    case RequestKind::kResolve:
      return resolve(client, request, reply);
    case RequestKind::kUnlisten:
      return unlisten(client, request.endpoint);
    case RequestKind::kStats:
    case RequestKind::kAdminLink:
    case RequestKind::kAdminConnection:
    case RequestKind::kAdminRegion:
    case RequestKind::kAdminUser:
      return watch({.id = client.id, .identity = client.identity}, request, reply);
    case RequestKind::kTrouble:
      return trouble(request, reply);
    case RequestKind::kLinkState:
      return query_link(reply);
    case RequestKind::kTraceStart:
    case RequestKind::kTraceStop:
    case RequestKind::kTraceStatus:
      return -EOPNOTSUPP;  // whoever owns the service answers these
  }
  return -EINVAL;
}

int Service::Impl::hello(const Client& client, Attachments& attachments, Reply& reply) {
  const auto& info = port->info();
  reply.mac = info.mac.to_u64();
  reply.mtu = info.mtu;
  reply.max_stu = info.max_stu;
  if (info.address) reply.ipv4 = info.address->value;
  reply.shards = info.shards ? info.shards->count() : 1;
  set_text(reply.text, info.link);
  attachments.memory = client.page_memory;
  return 0;
}

// Resolving an unknown address costs an ARP broadcast, and a place in a small table that all
// clients share. So a program may ask for 16 at once and for 100 per second. Beyond that it gets
// -EAGAIN, and nothing is sent.
int Service::Impl::resolve(Client& client, const Request& request, Reply& reply) {
  constexpr Time kPerQuestion = 10 * kMillisecond, kAhead = 16 * kPerQuestion;
  constexpr std::uint32_t kLoopbackNet = 127;
  port::Ipv4 const address{request.ipv4};
  const auto& info = port->info();
  if (address.value >> 24 == kLoopbackNet || address == info.address) {
    reply.mac = info.mac.to_u64();
    return 0;
  }
  const auto now = clock.now();
  auto& asked_until = client.use->asked_until;
  if (asked_until > now + kAhead) return -EAGAIN;
  const auto mac = port->resolve(address, now);
  if (!mac) {
    asked_until = std::max(asked_until.load(), now) + kPerQuestion;
    return -EAGAIN;
  }
  reply.mac = mac->to_u64();
  return 0;
}

int Service::Impl::trouble(const Request& request, Reply& reply) const {
  const auto text = port->trouble();
  set_text(reply.text,
           std::string_view(text).substr(std::min<std::size_t>(request.index, text.size())));
  return 0;
}

// The Node's counters first, then the others.
int Service::Impl::stats(const Request& request, Reply& reply) const {
  if (request.index < kCounterCount) {
    const auto counter = static_cast<Counter>(request.index);
    set_text(reply.text, Counters::name(counter));
    reply.value = node.counters().get(counter);
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
std::vector<port::PortCounter> Service::Impl::other_counters() const {
  auto counters = port->counters();
  if (port->info().shard == 0) counters.push_back({"link_changes", link_changes});
  if (!more_counters) return counters;
  const auto more = more_counters();
  counters.insert(counters.end(), more.begin(), more.end());
  return counters;
}

}  // namespace stp::service
