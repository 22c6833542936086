// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/endpoints.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/scarce_memory.h"
#include "stp/node/connection/key_guard.h"
#include "stp/node/inbound/unscheduled.h"

namespace stp::host {
namespace {

ipc::GivenChannel hand_out(const Channel& channel, Bell number, Attachments& attachments) {
  attachments.memory = channel.offered ? channel.offered : channel.memory.shared();
  return {.vc = channel.vc, .size = channel.memory->size(), .bell = number, .reserved = 0};
}

}  // namespace

// ---- channels

int Connections::make_channel(Client& client, EndpointId id, Bell& out) {
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(id, config); error != 0) return error;
  const auto size = ChannelGeometry{config.slots, config.credits}.size();
  const auto bytes =
      size + (config.connectionless ? UnscheduledBlocks::footprint() + sizeof(KeyGuard) : 0);
  auto& use = *client.use;
  if (allow_.within(use, &ProgramUse::connections, 1) != 0 ||
      allow_.within(use, &ProgramUse::queue_bytes, bytes) != 0 ||
      allow_.within(use, &ProgramUse::slots, config.slots) != 0)
    return -EDQUOT;
  auto channel = std::make_unique<Channel>();
  Reservation mapping;
  if (allow_.reserve(client.payer, Resource::kConnections, 1, channel->held) != 0 ||
      allow_.reserve_port(client.payer, channel->port) != 0 ||
      allow_.reserve(client.payer, Resource::kQueueBytes, bytes, channel->held) != 0 ||
      allow_.reserve(client.payer, Resource::kMappings, 1, mapping) != 0)
    return -EDQUOT;
  channel->memory = offers_.make_own(client.identity.uid, size, std::move(mapping));
  if (!channel->memory) return -errno;
  channel->endpoint = id;
  channel->one = {use.connections, 1};
  channel->counted_bytes = {use.queue_bytes, bytes};
  channel->counted_slots = {use.slots, config.slots};
  out = client.channels.add(std::move(channel));
  ++client.endpoints.at(id).channels;
  return 0;
}

// Memory for a channel that is about to be handed out. `out` stays empty for a client in this
// process.
int Connections::make_offer(const Client& client, std::size_t size,
                            std::shared_ptr<ipc::SharedMemory>& out) {
  if (!offers_.wanted()) return 0;
  Reservation mapping, file;
  if (allow_.reserve(client.payer, Resource::kMappings, 1, mapping) != 0 ||
      allow_.reserve(client.payer, Resource::kFiles, 1, file) != 0)
    return -EDQUOT;
  auto made = offers_.make(client.identity.uid, "stp-channel", size);
  if (made == nullptr) return -errno;
  made->charge(kept(std::move(file)), kept(std::move(mapping)));
  if (const auto error = allow_.check_file(made->fd()); error != 0) return error;
  out = std::move(made);
  return 0;
}

std::unique_ptr<Channel> Connections::take_out(Client& client, Bell number) {
  auto channel = client.channels.remove(number);
  auto& endpoint = client.endpoints.at(channel->endpoint);
  STP_ASSERT(endpoint.channels > 0, "a channel is counted with its endpoint");
  --endpoint.channels;
  return channel;
}

void Connections::put_to_use(Client& client, VcId vc, Bell number) {
  client.channels.put_to_use(vc, number);
  ++client.endpoints.at(client.channels.at(number)->endpoint).in_use;
}

// The client has given up the connection: it no longer counts as in use.
void Connections::set_closing(Client& client, Channel& channel) {
  if (channel.closing) return;
  STP_ASSERT(channel.vc == kNoneId || client.endpoints.at(channel.endpoint).in_use > 0,
             "a connection that is closed was in use");
  channel.closing = true;
  if (channel.vc != kNoneId) --client.endpoints.at(channel.endpoint).in_use;
}

// ---- channels for connections to come

int Connections::restock(Client& client, EndpointId id, Endpoint& endpoint) {
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(id, config); error != 0) return error;
  const auto size = ChannelGeometry{config.slots, config.credits}.size();
  const auto wanted = std::clamp<std::size_t>(limits::kStockBytes / size, 1, limits::kBacklog);
  while (endpoint.unaccepted < wanted) {
    Bell number = 0;
    if (const auto error = make_channel(client, id, number); error != 0) return error;
    const Needed from_here_on;
    ++endpoint.unaccepted;
    if (const auto error = stock(client, id, endpoint, number); error != 0) return error;
    if (!offers_.wanted() || endpoint.unaccepted == wanted) continue;
    if (endpoint.low) break;
    low_[client.identity.uid].push_back(id);
    endpoint.low = true;
    break;
  }
  return 0;
}

int Connections::restock_within_memory(Client& client, EndpointId id, Endpoint& endpoint) {
  return within_memory([&] { return restock(client, id, endpoint); }, [] { return -ENOMEM; });
}

EndpointId Connections::take_low() {
  auto of_user = low_.upper_bound(restocked_);
  if (of_user == low_.end()) of_user = low_.begin();
  restocked_ = of_user->first;
  const auto id = of_user->second.front();
  of_user->second.pop_front();
  if (of_user->second.empty()) low_.erase(of_user);
  return id;
}

int Connections::stock(Client& client, EndpointId id, Endpoint& endpoint, Bell number) {
  auto& channel = *client.channels.at(number);
  channel.rung_head = 0;
  const auto error = node_.stock(id, channel.memory->data(), cookie_of(client.id, number));
  if (error == 0) return 0;
  STP_ASSERT(endpoint.unaccepted > 0, "a channel for the stock was counted");
  --endpoint.unaccepted;
  take_out(client, number);
  return error;
}

// Takes the next connection that waits to be accepted.
int Connections::take(Client& client, EndpointId id, Endpoint& endpoint, Bell& out) {
  const Needed to_the_end;
  VcId vc = kNoneId;
  VcInfo info{};
  if (const auto error = node_.accept(id, vc); error != 0) return error;
  if (const auto error = node_.vc_info(vc, info); error != 0) return error;
  STP_ASSERT(client_in(info.cookie) == client.id && endpoint.unaccepted > 0,
             "a connection that waits is its listener's, and was counted");
  out = bell_in(info.cookie);
  put_to_use(client, vc, out);
  --endpoint.unaccepted;
  return 0;
}

void Connections::drop_backlog(Client& client, EndpointId id, Endpoint& endpoint) {
  for (std::uint64_t stocked = 0; node_.unstock(id, stocked); --endpoint.unaccepted)
    take_out(client, bell_in(stocked));
  for (Bell number = 0; take(client, id, endpoint, number) == 0;) {
    auto& channel = *client.channels.at(number);
    set_closing(client, channel);
    node_.close(channel.vc, true, clock_.now());
  }
}

// ---- requests

template <typename Open>
int Connections::open(Client& client, EndpointId id, Attachments& attachments,
                      ipc::GivenChannel& given, Open&& open) {
  Bell number = 0;
  if (const auto error = make_channel(client, id, number); error != 0) return error;
  Unused unused{client, number};
  auto& channel = *client.channels.at(number);
  VcId vc = kNoneId;
  if (const auto error = make_offer(client, channel.memory->size(), channel.offered); error != 0)
    return error;
  if (const auto error = open(channel.memory->data(), cookie_of(client.id, number), vc); error != 0)
    return error;
  unused.number.reset();
  const Needed from_here_on;
  put_to_use(client, vc, number);
  given = hand_out(channel, number, attachments);
  return 0;
}

int Connections::connect(Client& client, const ask::Connect& request, Attachments& attachments,
                         ipc::GivenChannel& given) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  const auto peer = MacAddr::from_u64(request.mac);
  if (peer.to_u64() != request.mac || peer.is_zero() || peer.is_group()) return -EINVAL;
  OptionPayload option;
  if (const auto error = ipc::from_wire(request.option, option); error != 0) return error;
  return open(client, request.endpoint, attachments, given,
              [&](std::byte* channel, std::uint64_t cookie, VcId& vc) {
                return node_.connect(request.endpoint, peer, request.uport, channel, cookie, vc,
                                     clock_.now(), option);
              });
}

int Connections::accept(Client& client, EndpointId id, Attachments& attachments,
                        ask::Accept::Reply& reply) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  if (node_.backlog(id) == 0) return -EAGAIN;
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(id, config); error != 0) return error;
  // Made first: a connection that was taken could not be put back.
  std::shared_ptr<ipc::SharedMemory> offered;
  const auto size = ChannelGeometry{config.slots, config.credits}.size();
  if (const auto error = make_offer(client, size, offered); error != 0) return error;
  Bell number = 0;
  if (const auto error = take(client, id, *endpoint, number); error != 0) return error;
  client.channels.at(number)->offered = std::move(offered);
  // An error only means that fewer connections can wait; this one is accepted all the same.
  restock_within_memory(client, id, *endpoint);
  const auto& channel = *client.channels.at(number);
  reply.channel = hand_out(channel, number, attachments);
  return info(client, channel.vc, reply.facts);
}

int Connections::backlog(Client& client, EndpointId id, std::uint64_t& out) const {
  if (client.endpoint(id) == nullptr) return -EBADF;
  out = node_.backlog(id);
  return 0;
}

int Connections::decide(Client& client, const ask::Decide& request) {
  auto* const channel = client.channels.of(request.vc);
  if (channel == nullptr) return -EBADF;
  OptionPayload option;
  if (const auto error = ipc::from_wire(request.option, option); error != 0) return error;
  if (request.admit != 0) return node_.admit(request.vc, option, clock_.now());
  const auto error = node_.refuse(request.vc, option, clock_.now());
  if (error == 0) set_closing(client, *channel);
  return error;
}

int Connections::open_port(Client& client, EndpointId id, Attachments& attachments,
                           ipc::GivenChannel& given) {
  if (client.endpoint(id) == nullptr) return -EBADF;
  return open(client, id, attachments, given,
              [&](std::byte* channel, std::uint64_t cookie, VcId& vc) {
                return node_.open_port(id, channel, cookie, vc, clock_.now());
              });
}

int Connections::info(Client& client, VcId vc, ipc::VcFacts& facts) const {
  if (client.channels.of(vc) == nullptr) return -EBADF;
  VcInfo info{};
  if (const auto error = node_.vc_info(vc, info); error != 0) return error;
  facts = facts_of(vc, info);
  return 0;
}

ipc::VcFacts facts_of(VcId vc, const VcInfo& info) {
  return {.vc = vc,
          .endpoint = info.endpoint,
          .mac = info.peer_mac.to_u64(),
          .state = static_cast<std::uint32_t>(info.state),
          .error = static_cast<std::uint32_t>(info.error),
          .local_port = info.local_port,
          .remote_port = info.remote_port,
          .local_key = info.local_key,
          .remote_key = info.remote_key,
          .local_bufsize = info.local_bufsize,
          .remote_bufsize = info.remote_bufsize,
          .local_max_stu = info.local_max_stu,
          .remote_max_stu = info.remote_max_stu,
          .local_slots = info.local_slots,
          .remote_slots = info.remote_slots,
          .peer_uport = info.peer_uport,
          .option = ipc::to_wire(info.peer_option)};
}

int Connections::close(Client& client, const ask::Close& request) {
  auto* const channel = client.channels.of(request.vc);
  if (channel == nullptr) return -EBADF;
  OptionPayload option;
  if (const auto error = ipc::from_wire(request.option, option); error != 0) return error;
  set_closing(client, *channel);
  return node_.close(request.vc, request.at_once != 0, clock_.now(), option);
}

int Connections::mapped(Client& client, VcId vc) {
  auto* const channel = client.channels.of(vc);
  if (channel == nullptr) return -EBADF;
  if (channel->offered == nullptr) return 0;  // it has said so before
  STP_ASSERT(channel->offered->size() == channel->memory->size(),
             "a channel is offered with the size that it has");
  if (const auto error = node_.move_channel(vc, channel->offered->data(), channel->copied);
      error != 0)
    return error;
  channel->memory = std::move(channel->offered);
  channel->offered = nullptr;
  return 0;
}

// ---- what the Node and the client report

// The user writes the head of the queue, so it counts only if it is ahead of the last one seen
// here: a client that moves it back and forth posts nothing.
bool Connections::kick(const Client& client, Bell number) {
  auto* const channel = client.channels.at(number);
  if (channel == nullptr || channel->vc == kNoneId) return false;
  node_.kick(channel->vc);
  const auto head = channel->control().tx_head.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(head - channel->rung_head) <= 0) return false;
  channel->rung_head = head;
  return true;
}

// In two steps: the second one reads what the first one has brought.
[[gnu::noinline]] void Connections::fetch_many_ahead(const Client& client, Bell first,
                                                     std::uint64_t bits) const {
  const auto each = [&](auto&& fetch) {
    for (auto left = bits; left != 0; left &= left - 1)
      if (const auto* const channel =
              client.channels.at(first + static_cast<Bell>(std::countr_zero(left)));
          channel != nullptr)
        fetch(*channel);
  };
  each([](const Channel& channel) { fetch_line(&channel); });
  each([this](const Channel& channel) { node_.fetch_ahead(channel.vc); });
}

void Connections::give_up(Client& client, Bell number) {
  auto* const channel = client.channels.at(number);
  if (channel == nullptr || channel->vc == kNoneId) return;
  set_closing(client, *channel);
  node_.close(channel->vc, true, clock_.now());
}

EndpointId Connections::gone(Client& owner, VcId vc, Bell number) {
  auto& channel = *owner.channels.at(number);
  STP_ASSERT(channel.vc == kNoneId || channel.vc == vc, "a channel has one connection");
  const auto id = channel.endpoint;
  auto& endpoint = owner.endpoints.at(id);
  if (channel.vc == kNoneId && !endpoint.ending) {
    // The client has never seen this channel, so the next connection can use it. The Node lays it
    // out anew, and ignores what its rings still hold.
    stock(owner, id, endpoint, number);
    return kNoneId;
  }
  STP_ASSERT(channel.vc != kNoneId || endpoint.unaccepted > 0,
             "a connection that nobody has accepted was counted");
  if (channel.vc == kNoneId) --endpoint.unaccepted;
  set_closing(owner, channel);
  owner.channels.end_use(vc);
  if (owner.mxs.count_of_connection(vc) != 0) leftovers_.push_back({.client = owner.id, .vc = vc});
  // The Node has written the channel's last state, so the threads that sleep on it may wake.
  owner.tell_news(number);
  wakes_.over(owner, take_out(owner, number));
  return id;
}

int Endpoints::open(Client& client, const ask::OpenEndpoint& request,
                    ask::OpenEndpoint::Reply& reply) {
  EndpointConfig config;
  if (const auto error = ipc::from_wire(request.config, config); error != 0) return error;
  // A Key keeps other hosts out, so only privileged clients may choose it.
  if (config.key != 0 && !client.privileged) return -EPERM;
  if (config.port != 0 && !may_listen(client, config.port)) return no_rule(client, config.port);
  if (const auto error = allow_.within(*client.use, &ProgramUse::endpoints, 1); error != 0)
    return error;
  NewEntry entry(client.endpoints);
  auto& made = entry.value();
  if (const auto error = allow_.reserve(client.payer, Resource::kEndpoints, 1, made.held);
      error != 0)
    return error;
  NewEntry owner(owners_, client.id);
  EndpointId id = kNoneId;
  if (const auto error = node_.open_endpoint(config, id, client.id); error != 0) return error;
  entry.enter(id).one = {client.use->endpoints, 1};
  owner.enter(id);
  reply.endpoint = id;
  if (const auto error = node_.endpoint_config(id, config); error != 0) return error;
  reply.config = ipc::to_wire(config);
  return 0;
}

int Endpoints::configure(Client& client, const ask::Configure& request, ipc::WireConfig& became) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  EndpointConfig config, now;
  if (const auto error = ipc::from_wire(request.config, config); error != 0) return error;
  if (const auto error = node_.endpoint_config(request.endpoint, now); error != 0) return error;
  if (config.key != 0 && config.key != now.key && !client.privileged) return -EPERM;
  if (config.port != 0 && config.port != now.port && !may_listen(client, config.port))
    return no_rule(client, config.port);
  if (const auto error = node_.configure(request.endpoint, config); error != 0) return error;
  return this->config(client, request.endpoint, became);
}

int Endpoints::config(Client& client, EndpointId id, ipc::WireConfig& out) const {
  if (client.endpoint(id) == nullptr) return -EBADF;
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(id, config); error != 0) return error;
  out = ipc::to_wire(config);
  return 0;
}

bool Endpoints::may_listen(const Client& client, std::uint32_t on) const {
  return rules_.permit(on, client.identity.uid, client.identity.groups);
}

int Endpoints::no_rule(const Client& client, std::uint32_t port) {
  return allow_.forbidden("no --listen rule of stpd gives port " + std::to_string(port) +
                          " to uid " + std::to_string(client.identity.uid) +
                          ": add one, then SIGHUP");
}

int Endpoints::listen(Client& client, const ask::Listen& request) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (!may_listen(client, request.uport)) return no_rule(client, request.uport);
  if (const auto error = node_.listen(request.endpoint, request.uport); error != 0) return error;
  endpoint->listening = true;
  const auto error = connections_.restock_within_memory(client, request.endpoint, *endpoint);
  // With one channel in stock the endpoint listens, for fewer connections at a time.
  if (error == 0 || endpoint->unaccepted != 0) return 0;
  endpoint->listening = false;
  node_.unlisten(request.endpoint);
  return error;
}

int Endpoints::unlisten(Client& client, EndpointId id) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  connections_.drop_backlog(client, id, *endpoint);
  endpoint->listening = false;
  return node_.unlisten(id);
}

int Endpoints::close(Client& client, EndpointId id) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->regions != 0) return -EBUSY;
  if (endpoint->in_use != 0) return -EBUSY;
  end(client, id, *endpoint);
  return 0;
}

ClientId Endpoints::owner_of(EndpointId id) const {
  const auto at = owners_.find(id);
  return at == owners_.end() ? 0 : at->second;
}

void Endpoints::end(Client& client, EndpointId id, Endpoint& endpoint) {
  endpoint.ending = true;
  if (endpoint.listening) connections_.drop_backlog(client, id, endpoint);
  if (!endpoint.gone.empty()) leftovers_.push_back({.client = client.id, .endpoint = id});
  erase_if_ended(client, id);
}

void Endpoints::erase_if_ended(Client& client, EndpointId id) {
  const auto at = client.endpoints.find(id);
  if (at == client.endpoints.end()) return;
  const auto& endpoint = at->second;
  if (!endpoint.ending) return;
  // The Node stops listening even if it answers -EBUSY. After it has closed the endpoint, events of
  // the endpoint's connections and regions may still be queued.
  const auto closed = node_.close_endpoint(id) != -EBUSY;
  if (!closed || endpoint.channels != 0 || endpoint.regions != 0 || !endpoint.gone.empty()) return;
  STP_ASSERT(endpoint.in_use == 0 && endpoint.unaccepted == 0,
             "an endpoint without a channel has no connection");
  client.endpoints.erase(at);
  owners_.erase(id);
}

// ---- regions: mapping

// Checks whether the region could be mapped, except for the budgets of its user. `bytes`: the
// length of the region. `mapped`: the bytes that count against the quota.
int Regions::check(Client& client, const ask::Map& request, std::uint64_t bytes,
                   std::uint64_t mapped) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (request.direction > static_cast<std::uint32_t>(Direction::kReceive)) return -EINVAL;
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(request.endpoint, config); error != 0) return error;
  const auto receive = static_cast<Direction>(request.direction) == Direction::kReceive;
  const auto first = receive ? config.rx_bufx_base : config.tx_bufx_base;
  const auto count = receive ? config.rx_bufx_count : config.tx_bufx_count;
  if (bytes == 0) return -EINVAL;
  if (request.base < first) return -ERANGE;
  if (request.base - first + (bytes >> config.bufsize) > count) return -ERANGE;
  if (const auto error = allow_.within(*client.use, &ProgramUse::regions, 1); error != 0)
    return error;
  return allow_.within(*client.use, &ProgramUse::mapped_bytes, mapped);
}

int Regions::claim(Client& client, const ask::Map& request, std::uint64_t bytes, std::size_t files,
                   RegionClaim& out) {
  std::uint64_t length = 0;
  for (const auto& piece :
       std::span(request.pieces).first(std::min(request.piece_count, ipc::kMaxPieces))) {
    if (piece.length > limits::kMostBytes - length) return -EINVAL;
    length += piece.length;
  }
  if (const auto error = check(client, request, length, bytes); error != 0) return error;
  out.torn = client.torn;
  out.payer = allow_.payer(client.identity.uid).account;
  if (const auto error = allow_.reserve(client.payer, Resource::kRegions, 1, out.of_region);
      error != 0)
    return error;
  if (const auto error = allow_.reserve(client.payer, Resource::kMappedBytes, bytes, out.of_memory);
      error != 0)
    return error;
  if (const auto error = allow_.reserve(client.payer, Resource::kFiles, files, out.of_request);
      error != 0)
    return error;
  // A mapping of each file, and one of each segment.
  return allow_.reserve(client.payer, Resource::kMappings, request.segment_count + files,
                        out.of_memory);
}

int Regions::map(Client& client, const ask::Map& request, Attachments& attachments,
                 ask::Map::Reply& reply) {
  std::uint64_t length = 0;
  for (const auto piece : attachments.pieces) length += piece.size();
  const auto mapped = attachments.keep ? std::max(length, attachments.mapped_bytes) : 0;
  if (const auto error = check(client, request, length, mapped); error != 0) return error;
  NewEntry entry(client.regions);
  NewEntry owner(owners_, client.id);
  auto& made = entry.value();
  made.endpoint = request.endpoint;
  made.direction = static_cast<Direction>(request.direction);
  made.base = request.base;
  made.bytes = length;
  made.held = std::move(attachments.of_region);
  Reservation tables;
  if (const auto error = reserve(client, attachments, made, tables); error != 0) return error;
  RegionId id = kNoneId;
  if (const auto error =
          node_.map(made.endpoint, made.direction, made.base, attachments.pieces, id);
      error != 0)
    return error;
  owner.enter(id);
  auto& region = entry.enter(id);
  region.keep = std::move(attachments.keep);
  region.one = {client.use->regions, 1};
  region.counted_bytes = {client.use->mapped_bytes, mapped};
  auto& endpoint = client.endpoints.at(request.endpoint);
  ++endpoint.regions;
  endpoint.held.join(std::move(tables));
  settle_tables(client, request.endpoint, endpoint);
  reply.region = id;
  return 0;
}

// Reserves the place of the region, unless claim() did, and what the Bufx tables grow.
int Regions::reserve(const Client& client, const Attachments& attachments, Region& made,
                     Reservation& tables) {
  if (made.held.amount(Resource::kRegions) == 0)
    if (const auto error = allow_.reserve(client.payer, Resource::kRegions, 1, made.held);
        error != 0)
      return error;
  const auto growth =
      node_.table_growth(made.endpoint, made.direction, made.base, attachments.pieces);
  if (const auto error = allow_.within(*client.use, &ProgramUse::table_bytes, growth); error != 0)
    return error;
  return allow_.reserve(client.payer, Resource::kTableBytes, growth, tables);
}

// Reduces the reservation for the endpoint's Bufx tables to what they take.
void Regions::settle_tables(Client& client, EndpointId id, Endpoint& endpoint) {
  endpoint.held.shrink(Resource::kTableBytes, node_.table_bytes(id));
  endpoint.counted_tables = {client.use->table_bytes, endpoint.held.amount(Resource::kTableBytes)};
}

// ---- regions: unmapping

void Regions::start_unmap(RegionId id, Region& region) {
  if (region.state != RegionState::kBound) return;
  region.state.must(RegionEvent::kUnmap);
  node_.unmap(id);
}

EndpointId Regions::gone(Client& owner, RegionId id) {
  owners_.erase(id);
  auto& region = owner.regions.at(id);
  const auto of = region.endpoint;
  region.state.must(RegionEvent::kGone);
  region.keep.reset();
  region.counted_bytes.reset();
  if (owner.mxs.count_of_region(id) != 0) leftovers_.push_back({.client = owner.id, .region = id});
  auto& endpoint = owner.endpoints.at(of);
  STP_ASSERT(endpoint.regions > 0, "a region is counted with its endpoint");
  --endpoint.regions;
  settle_tables(owner, of, endpoint);
  if (owner.leaving || endpoint.ending)
    owner.regions.erase(id);
  else
    endpoint.gone.insert(id);
  return of;
}

void Regions::forget(Client& client, RegionId id) {
  const auto at = client.regions.find(id);
  if (at == client.regions.end()) return;
  STP_ASSERT(at->second.state == RegionState::kGone, "a region is forgotten once it has gone");
  if (const auto of = client.endpoints.find(at->second.endpoint); of != client.endpoints.end())
    of->second.gone.erase(id);
  client.regions.erase(at);
}

ClientId Regions::owner_of(RegionId id) const {
  const auto at = owners_.find(id);
  return at == owners_.end() ? 0 : at->second;
}

std::optional<std::pair<RegionId, ClientId>> Regions::after(RegionId id) const {
  const auto at = owners_.upper_bound(id);
  if (at == owners_.end()) return std::nullopt;
  return *at;
}

int Regions::settle(Client& client, RegionId id) const {
  const auto* const region = client.region(id);
  if (region == nullptr || region->state != RegionState::kBound) return -EBADF;
  return node_.is_read(id) ? -EINPROGRESS : 0;
}

// ---- Mx

int Regions::alloc_mx(Client& client, const ask::AllocMx& request, ask::AllocMx::Reply& reply) {
  constexpr std::uint32_t kAll = permit::kData | permit::kGet | permit::kFetchOp;
  auto* const region = client.region(request.region);
  if (region == nullptr || region->state != RegionState::kBound) return -EBADF;
  if (request.permissions == 0 || (request.permissions & ~kAll) != 0) return -EINVAL;
  if (request.vc != kNoneId) {
    const auto* const channel = client.channels.of(request.vc);
    if (channel == nullptr) return -EBADF;
    if (channel->endpoint != region->endpoint) return -EINVAL;
  }
  if (const auto error = allow_.within(*client.use, &ProgramUse::mxs, 1); error != 0) return error;
  MxRecords::Record record{.region = request.region, .vc = request.vc, .held = {}, .one = {}};
  if (const auto error = allow_.reserve(client.payer, Resource::kMx, 1, record.held); error != 0)
    return error;
  std::uint16_t mx = 0;
  if (const auto error = node_.alloc_mx(request.region, request.vc,
                                        static_cast<std::uint8_t>(request.permissions), mx);
      error != 0)
    return error;
  record.one = {client.use->mxs, 1};
  try {
    client.mxs.add(mx, std::move(record));
  } catch (...) {  // no memory
    node_.free_mx(region->endpoint, mx);
    throw;
  }
  reply.mx = mx;
  return 0;
}

int Regions::free_mx(Client& client, const ask::FreeMx& request) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  if (request.mx > std::numeric_limits<std::uint16_t>::max()) return -ERANGE;
  const auto mx = static_cast<std::uint16_t>(request.mx);
  if (const auto error = node_.free_mx(request.endpoint, mx); error != 0) return error;
  client.mxs.remove(mx);
  return 0;
}

}  // namespace stp::host
