// SPDX-License-Identifier: BSD-3-Clause
// Requests of clients, passed to the mechanism that answers them.
#include <algorithm>
#include <cerrno>
#include <string_view>

#include "libst/service/service_impl.h"
#include "libst/service/text_field.h"

namespace stp::service {
namespace {

// The text is longer than a reply: the client asks for it part by part.
int trouble(const port::Port& port, const Request& request, Reply& reply) {
  const auto station = MacAddr::from_u64(request.mac);
  const auto text = station.is_zero() ? port.trouble() : port.trouble_of(station);
  const auto from = std::min<std::size_t>(request.index, text.size());
  set_text(reply.text, std::string_view(text).substr(from));
  return 0;
}

}  // namespace

void Service::handle(ClientId id, const Request& request, Attachments& attachments, Reply& reply) {
  reply = {};
  reply.version = kProtocolVersion;
  auto* const client = impl_->present(id);
  if (client == nullptr) {
    reply.result = -EBADF;
  } else if (request.version != kProtocolVersion) {
    reply.result = -EPROTONOSUPPORT;
  } else {
    impl_->allow.answer(reply, [&] { return impl_->answer(*client, request, attachments, reply); });
  }
  impl_->handle_events();
  impl_->bells.ring_own();
}

int Service::claim_region(ClientId id, const Request& request, std::uint64_t bytes,
                          std::size_t files, RegionClaim& out, Reply& reply) {
  return impl_->allow.answer(reply, [&] {
    auto* const client = impl_->present(id);
    return client == nullptr ? -EBADF : impl_->regions.claim(*client, request, bytes, files, out);
  });
}

void Service::watch(const ClientIdentity& viewer, const Request& request, Reply& reply) {
  reply = {};
  reply.version = kProtocolVersion;
  impl_->allow.answer(reply, [&] {
    return impl_->inspection.answer({.id = 0, .identity = viewer}, request, reply);
  });
}

int Service::Impl::answer(Client& client, const Request& request, Attachments& attachments,
                          Reply& reply) {
  switch (request.kind) {
    case RequestKind::kHello:
      return hello(client, attachments, reply);
    case RequestKind::kOpenEndpoint:
      return endpoints.open(client, request, reply);
    case RequestKind::kConfigure:
      return endpoints.configure(client, request, reply);
    case RequestKind::kEndpointConfig:
      return endpoints.config(client, request, reply);
    case RequestKind::kCloseEndpoint:
      return endpoints.close(client, request.endpoint);
    case RequestKind::kListen:
      return endpoints.listen(client, request);
    case RequestKind::kUnlisten:
      return endpoints.unlisten(client, request.endpoint);
    case RequestKind::kAccept:
      return connections.accept(client, request.endpoint, attachments, reply);
    case RequestKind::kConnect:
      return connections.connect(client, request, attachments, reply);
    case RequestKind::kMapped:
      return mapped(client, request.vc);
    case RequestKind::kBacklog:
      return connections.backlog(client, request.endpoint, reply);
    case RequestKind::kDecide:
      return connections.decide(client, request);
    case RequestKind::kOpenPort:
      return connections.open_port(client, request.endpoint, attachments, reply);
    case RequestKind::kVcInfo:
      return info(client, request.vc, reply);
    case RequestKind::kClose:
      return connections.close(client, request);
    case RequestKind::kMap:
      return regions.map(client, request, attachments, reply);
    case RequestKind::kUnmap:
      return unmap(client, request.region);
    case RequestKind::kSettle:
      return regions.settle(client, request.region);
    case RequestKind::kAllocMx:
      return regions.alloc_mx(client, request, reply);
    case RequestKind::kFreeMx:
      return regions.free_mx(client, request);
    case RequestKind::kResolve:
      return resolve(client, request, reply);
    case RequestKind::kStats:
    case RequestKind::kAdminLink:
    case RequestKind::kAdminConnection:
    case RequestKind::kAdminRegion:
    case RequestKind::kAdminUser:
    case RequestKind::kAdminSteering:
      return inspection.answer({.id = client.id, .identity = client.identity}, request, reply);
    case RequestKind::kTrouble:
      return trouble(*port, request, reply);
    case RequestKind::kLinkState:
      link.answer(reply, clock.now());
      return 0;
    case RequestKind::kTraceStart:
    case RequestKind::kTraceStop:
    case RequestKind::kTraceStatus:
      return -EOPNOTSUPP;  // whoever owns the service answers these
  }
  return -EINVAL;
}

int Service::Impl::info(Client& client, VcId vc, Reply& reply) {
  const auto error = connections.info(client, vc, reply);
  if (error == 0) set_text(reply.text, port->name_of_station(MacAddr::from_u64(reply.mac)));
  return error;
}

int Service::Impl::hello(Client& client, Attachments& attachments, Reply& reply) {
  const auto& info = port->info();
  reply.mac = info.mac.to_u64();
  reply.mtu = info.mtu;
  reply.max_stu = info.max_stu;
  if (info.address) reply.ipv4 = info.address->value;
  reply.shards = info.shards ? info.shards->count() : 1;
  reply.udp_port = info.udp_port;
  reply.peer_udp_port = info.peer_udp_port;
  reply.ipv6 = info.ipv6 ? 1 : 0;
  set_text(reply.text, info.link);
  if (offers.wanted() && client.page_memory->fd() < 0 && client.offered_page == nullptr) {
    client.offered_page = offers.make(client.identity.uid, "stp-client", sizeof(ClientPage));
    if (client.offered_page == nullptr) return -errno;
    if (const auto error = allow.check_file(client.offered_page->fd()); error != 0) {
      client.offered_page = nullptr;
      return error;
    }
    client.offered_page->charge(std::move(client.files), std::move(client.mapping));
  }
  attachments.memory = client.offered_page ? client.offered_page : client.page_memory;
  return 0;
}

// The client has mapped what it was offered, and can take none of its pages away any more.
int Service::Impl::mapped(Client& client, VcId vc) {
  if (vc != kNoneId) return connections.mapped(client, vc);
  if (client.offered_page == nullptr) return 0;  // it has said so before
  const auto accepts = client.page().accepts.load();
  client.page_memory = std::move(client.offered_page);
  client.offered_page = nullptr;
  client.page().begin(kProtocolVersion);
  client.page().accepts.store(accepts);
  bells.greet(client);
  link.greet(client);
  return 0;
}

// Resolving an unknown address costs an ARP broadcast, and a place in a small table that all
// clients share; over UDP, any address may cost such a place. So a program may ask for 16 at once
// and for 100 per second. Beyond that it gets -EAGAIN, and nothing is sent.
int Service::Impl::resolve(Client& client, const Request& request, Reply& reply) {
  constexpr Time kPerQuestion = 10 * kMillisecond, kAhead = 16 * kPerQuestion;
  constexpr std::uint32_t kLoopbackNet = 127;
  port::Ipv4 const four{request.ipv4};
  const auto& info = port->info();
  const bool internet = info.internet;
  if (!internet && (four.value >> 24 == kLoopbackNet || four == info.address)) {
    reply.mac = info.mac.to_u64();
    return 0;
  }
  const auto now = clock.now();
  auto& asked_until = client.use->asked_until;
  if (asked_until > now + kAhead) return -EAGAIN;
  auto address = port::InternetAddress::of(four, 0);
  if (four.value == 0) {
    std::ranges::copy(request.ip, address.ip.begin());
    address.scope = request.ip_scope;
  }
  address.port = static_cast<std::uint16_t>(request.udp_port);
  const auto mac = port->find_station(address, now);
  if (internet || !mac) asked_until = std::max(asked_until.load(), now) + kPerQuestion;
  if (!mac) return internet ? -EHOSTUNREACH : -EAGAIN;
  reply.mac = mac->to_u64();
  return 0;
}

// The region's id stays valid until the result is 0, so a client that got -EINPROGRESS can repeat
// the request.
int Service::Impl::unmap(Client& client, RegionId id) {
  auto* const region = client.region(id);
  if (region == nullptr || client.endpoint(region->endpoint) == nullptr) return -EBADF;
  regions.start_unmap(id, *region);
  handle_events();
  if (region->state != RegionState::kGone) return -EINPROGRESS;
  removal.go_on();
  Regions::forget(client, id);
  return 0;
}

}  // namespace stp::service
