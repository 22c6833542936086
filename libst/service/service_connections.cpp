// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>

#include "libst/service/limits.h"
#include "libst/service/service_impl.h"
#include "libst/service/wire_config.h"
#include "stp/base/assert.h"
#include "stp/node/connection/key_guard.h"
#include "stp/node/inbound/unscheduled.h"

namespace stp::service {

// ---- channels ----

int Service::Impl::make_channel(Client& client, EndpointId id, Bell& out) {
  EndpointConfig config;
  if (const auto error = node.endpoint_config(id, config); error != 0) return error;
  const auto size = ChannelGeometry{config.slots, config.credits}.size();
  const auto bytes =
      size + (config.connectionless ? UnscheduledBlocks::footprint() + sizeof(KeyGuard) : 0);
  auto& use = *client.use;
  if (use.channels >= quotas.connections) return over_quota("max-connections", quotas.connections);
  if (use.queue_bytes + bytes > quotas.queue_bytes)
    return over_quota("max-queues", quotas.queue_bytes);
  if (use.slots + config.slots > quotas.slots) return over_quota("max-slots", quotas.slots);
  auto channel = std::make_unique<Channel>();
  Reservation mapping, file;
  if (reserve(client, Resource::kConnections, 1, channel->place) != 0 ||
      reserve_port(client, channel->port) != 0 ||
      reserve(client, Resource::kQueueBytes, bytes, channel->queue) != 0 ||
      reserve(client, Resource::kMappings, 1, mapping) != 0 ||
      reserve(client, Resource::kFiles, 1, file) != 0)
    return -EDQUOT;
  channel->bytes = bytes;
  channel->memory = SharedMemory::create("stp-channel", size);
  if (!channel->memory) return -errno;
  channel->memory->charge(std::move(file), std::move(mapping));
  if (channel->memory->fd() >= first_reserved_file) return -EMFILE;
  channel->endpoint = id;
  channel->slots = config.slots;
  channel->one = {use.channels, 1};
  channel->counted_bytes = {use.queue_bytes, bytes};
  channel->counted_slots = {use.slots, config.slots};
  if (client.free_bells.empty()) {
    // Reserved first, so that release_channel() need not allocate to return the number.
    client.free_bells.reserve(client.channels.size() + 1);
    client.channels.emplace_back();
    client.free_bells.push_back(static_cast<Bell>(client.channels.size() - 1));
  }
  out = client.free_bells.back();
  client.free_bells.pop_back();
  STP_ASSERT(out < client.channels.size() && client.channels[out] == nullptr,
             "a free bell number is of a place without a channel");
  client.channels[out] = std::move(channel);
  client.channel_bytes += bytes;
  client.slots += config.slots;
  ++client.endpoints.at(id).channels;
  return 0;
}

void Service::Impl::release_channel(Client& client, Bell number) {
  STP_ASSERT(client.channel(number) != nullptr, "a channel that is released is the client's");
  const auto channel = std::move(client.channels[number]);
  STP_ASSERT(channel->bytes <= client.channel_bytes && channel->slots <= client.slots,
             "a channel is counted with its client");
  STP_ASSERT(client.endpoints.at(channel->endpoint).channels > 0,
             "a channel is counted with its endpoint");
  STP_ASSERT(!client.vcs.contains(channel->vc), "a channel that is released has no connection");
  client.free_bells.push_back(number);
  client.channel_bytes -= channel->bytes;
  client.slots -= channel->slots;
  --client.endpoints.at(channel->endpoint).channels;
}

void Service::Impl::put_to_use(Client& client, VcId vc, Bell bell) {
  STP_ASSERT(client.channel(bell) != nullptr, "a connection has a channel of its client");
  auto& channel = *client.channels[bell];
  STP_ASSERT(channel.vc == kNoneId && !channel.closing && !client.vcs.contains(vc),
             "a channel is put to use once");
  client.vcs.emplace(vc, bell);
  channel.vc = vc;
  ++client.endpoints.at(channel.endpoint).in_use;
}

// The client has given up the connection: it no longer counts as in use.
void Service::Impl::set_closing(Client& client, Channel& channel) {
  if (channel.closing) return;
  STP_ASSERT(channel.vc == kNoneId || client.endpoints.at(channel.endpoint).in_use > 0,
             "a connection that is closed was in use");
  channel.closing = true;
  if (channel.vc != kNoneId) --client.endpoints.at(channel.endpoint).in_use;
}

void Service::Impl::hand_out(const Channel& channel, Bell number, Attachments& attachments,
                             Reply& reply) {
  reply.vc = channel.vc;
  reply.channel = number;
  reply.channel_size = channel.memory->size();
  attachments.memory = channel.memory;
}

// ---- channels for connections to come ----

int Service::Impl::restock(Client& client, EndpointId id, Endpoint& endpoint) {
  EndpointConfig config;
  if (const auto error = node.endpoint_config(id, config); error != 0) return error;
  const auto size = ChannelGeometry{config.slots, config.credits}.size();
  const auto wanted = std::clamp<std::size_t>(limits::kStockBytes / size, 1, limits::kBacklog);
  while (endpoint.unaccepted < wanted) {
    Bell number = 0;
    if (const auto error = make_channel(client, id, number); error != 0) return error;
    ++endpoint.unaccepted;
    if (const auto error = stock(client, id, endpoint, number); error != 0) return error;
  }
  return 0;
}

int Service::Impl::stock(Client& client, EndpointId id, Endpoint& endpoint, Bell number) {
  client.channels[number]->rung_head = 0;
  const auto error =
      node.stock(id, client.channels[number]->memory->data(), cookie(client, number));
  if (error == 0) return 0;
  STP_ASSERT(endpoint.unaccepted > 0, "a channel for the stock was counted");
  --endpoint.unaccepted;
  release_channel(client, number);
  return error;
}

// Takes the next connection that waits to be accepted.
int Service::Impl::take_connection(Client& client, EndpointId id, Endpoint& endpoint, Bell& out) {
  VcId vc = kNoneId;
  VcInfo info{};
  if (const auto error = node.accept(id, vc); error != 0) return error;
  if (const auto error = node.vc_info(vc, info); error != 0) return error;
  STP_ASSERT(info.cookie >> 32 == client.id && endpoint.unaccepted > 0,
             "a connection that waits is its listener's, and was counted");
  out = static_cast<Bell>(info.cookie);
  put_to_use(client, vc, out);
  --endpoint.unaccepted;
  return 0;
}

void Service::Impl::drop_backlog(Client& client, EndpointId id, Endpoint& endpoint) {
  for (std::uint64_t stocked = 0; node.unstock(id, stocked); --endpoint.unaccepted)
    release_channel(client, static_cast<Bell>(stocked));
  for (Bell number = 0; take_connection(client, id, endpoint, number) == 0;) {
    auto& channel = *client.channels[number];
    set_closing(client, channel);
    node.close(channel.vc, true, clock.now());
  }
}

// ---- requests ----

int Service::Impl::connect(Client& client, const Request& request, Attachments& attachments,
                           Reply& reply) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  const auto peer = MacAddr::from_u64(request.mac);
  if (peer.to_u64() != request.mac || peer.is_zero() || peer.is_group()) return -EINVAL;
  OptionPayload option;
  if (const auto error = from_wire(request.option, option); error != 0) return error;
  Bell number = 0;
  if (const auto error = make_channel(client, request.endpoint, number); error != 0) return error;
  const auto& channel = *client.channels[number];
  VcId vc = kNoneId;
  if (const auto error = node.connect(request.endpoint, peer, request.uport, channel.memory->data(),
                                      cookie(client, number), vc, clock.now(), option);
      error != 0) {
    release_channel(client, number);
    return error;
  }
  put_to_use(client, vc, number);
  hand_out(channel, number, attachments, reply);
  return 0;
}

int Service::Impl::accept(Client& client, EndpointId id, Attachments& attachments, Reply& reply) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  Bell number = 0;
  if (const auto error = take_connection(client, id, *endpoint, number); error != 0) return error;
  // An error only means that fewer connections can wait; this one is accepted all the same.
  restock(client, id, *endpoint);
  const auto& channel = *client.channels[number];
  hand_out(channel, number, attachments, reply);
  return vc_info(client, channel.vc, reply);
}

int Service::Impl::backlog(Client& client, EndpointId id, Reply& reply) const {
  if (client.endpoint(id) == nullptr) return -EBADF;
  reply.value = node.backlog(id);
  return 0;
}

int Service::Impl::decide(Client& client, const Request& request) {
  auto* const channel = client.connection(request.vc);
  if (channel == nullptr) return -EBADF;
  OptionPayload option;
  if (const auto error = from_wire(request.option, option); error != 0) return error;
  if (request.admit != 0) return node.admit(request.vc, option, clock.now());
  const auto error = node.refuse(request.vc, option, clock.now());
  if (error == 0) set_closing(client, *channel);
  return error;
}

int Service::Impl::open_port(Client& client, EndpointId id, Attachments& attachments,
                             Reply& reply) {
  if (client.endpoint(id) == nullptr) return -EBADF;
  Bell number = 0;
  if (const auto error = make_channel(client, id, number); error != 0) return error;
  const auto& channel = *client.channels[number];
  VcId vc = kNoneId;
  if (const auto error =
          node.open_port(id, channel.memory->data(), cookie(client, number), vc, clock.now());
      error != 0) {
    release_channel(client, number);
    return error;
  }
  put_to_use(client, vc, number);
  hand_out(channel, number, attachments, reply);
  return 0;
}

int Service::Impl::vc_info(Client& client, VcId vc, Reply& reply) const {
  if (client.connection(vc) == nullptr) return -EBADF;
  VcInfo info{};
  if (const auto error = node.vc_info(vc, info); error != 0) return error;
  set_vc_info(vc, info, reply);
  return 0;
}

void Service::Impl::set_vc_info(VcId vc, const VcInfo& info, Reply& reply) {
  reply.vc = vc;
  reply.endpoint = info.endpoint;
  reply.mac = info.peer_mac.to_u64();
  reply.state = static_cast<std::uint32_t>(info.state);
  reply.error = static_cast<std::uint32_t>(info.error);
  reply.local_port = info.local_port;
  reply.remote_port = info.remote_port;
  reply.local_key = info.local_key;
  reply.remote_key = info.remote_key;
  reply.local_bufsize = info.local_bufsize;
  reply.remote_bufsize = info.remote_bufsize;
  reply.local_max_stu = info.local_max_stu;
  reply.remote_max_stu = info.remote_max_stu;
  reply.local_slots = info.local_slots;
  reply.remote_slots = info.remote_slots;
  reply.peer_uport = info.peer_uport;
  reply.option = to_wire(info.peer_option);
}

int Service::Impl::close(Client& client, const Request& request) {
  auto* const channel = client.connection(request.vc);
  if (channel == nullptr) return -EBADF;
  OptionPayload option;
  if (const auto error = from_wire(request.option, option); error != 0) return error;
  set_closing(client, *channel);
  return node.close(request.vc, request.at_once != 0, clock.now(), option);
}

}  // namespace stp::service
