// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/endpoints.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
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
  auto& channel = *client.channels.at(number);
  VcId vc = kNoneId;
  auto error = make_offer(client, channel.memory->size(), channel.offered);
  if (error == 0) error = open(channel.memory->data(), cookie_of(client.id, number), vc);
  if (error != 0) {
    take_out(client, number);
    return error;
  }
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
  restock(client, id, *endpoint);
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
  if (const auto error = node_.move_channel(vc, channel->offered->data()); error != 0) return error;
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
  const auto error = connections_.restock(client, request.endpoint, *endpoint);
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

namespace {

// Steps of removal in one turn, for all clients together.
constexpr int kSlice = 64;

}  // namespace

Removal::Removal(ClientTable& clients, Bells& bells, Connections& connections, Regions& regions,
                 Endpoints& endpoints, Leftovers& leftovers)
    : clients_(clients),
      bells_(bells),
      connections_(connections),
      regions_(regions),
      endpoints_(endpoints),
      leftovers_(leftovers),
      expelled_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!expelled_fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Removal::begin(Client& client) {
  STP_ASSERT(!client.leaving, "a client leaves once");
  bells_.remove(client);
  client.leaving = true;
  leaving_.push_back(client.id);
}

void Removal::expel_torn() {
  const auto tears = ipc::MemoryGuard::tears();
  if (tears == seen_tears_) return;
  seen_tears_ = tears;
  for (auto& [id, client] : clients_) {
    work::count("clients");
    if (!client.torn->exchange(false) || client.leaving) continue;
    begin(client);
    expelled_.push_back(id);
    ::eventfd_write(expelled_fd_.get(), 1);
  }
}

std::optional<ClientId> Removal::next_expelled() {
  if (expelled_.empty()) return std::nullopt;
  const auto id = expelled_.front();
  expelled_.pop_front();
  return id;
}

bool Removal::remove_some() {
  bool any = false;
  for (int step = 0; step < kSlice; ++step) {
    work::count("what is over");
    if (!leaving_.empty()) {
      any = true;
      const auto id = leaving_.front();
      leaving_.pop_front();
      auto* const gone = clients_.find(id);
      if (gone == nullptr) continue;
      if (remove_one_of(*gone))
        leaving_.push_back(id);  // one step of each in turn
      else
        clients_.forget_if_empty(*gone);
    }
    if (!leftovers_.empty()) {
      any = true;
      auto* const owner = clients_.find(leftovers_.front().client);
      if (owner != nullptr && remove_one_of(leftovers_.front(), *owner)) continue;
      leftovers_.pop_front();
      if (owner != nullptr) clients_.forget_if_empty(*owner);
    } else if (leaving_.empty()) {
      break;
    }
  }
  return any;
}

// Returns false if only the Node's events remain to wait for. Connections first, so that their
// peers are told; then regions; then endpoints. An endpoint is erased with the last of its objects.
bool Removal::remove_one_of(Client& client) {
  if (client.next_bell < client.channels.numbers()) {
    connections_.give_up(client, client.next_bell++);
    return true;
  }
  if (const auto at = client.regions.upper_bound(client.next_region); at != client.regions.end()) {
    client.next_region = at->first;
    if (at->second.state == RegionState::kGone)
      Regions::forget(client, at->first);
    else
      regions_.start_unmap(at->first, at->second);
    return true;
  }
  const auto at = client.endpoints.upper_bound(client.next_endpoint);
  if (at == client.endpoints.end()) return false;
  client.next_endpoint = at->first;
  if (!at->second.ending) endpoints_.end(client, at->first, at->second);
  return true;
}

// Removes one Mx or region of the leftover. Returns false if nothing is left of it.
bool Removal::remove_one_of(const Leftover& leftover, Client& client) {
  if (leftover.region != kNoneId) return client.mxs.remove_one_of_region(leftover.region);
  if (leftover.vc != kNoneId) return client.mxs.remove_one_of_connection(leftover.vc);
  const auto at = client.endpoints.find(leftover.endpoint);
  if (at == client.endpoints.end()) return false;
  if (const auto& gone = at->second.gone; !gone.empty()) {
    Regions::forget(client, *gone.begin());
    return true;
  }
  endpoints_.erase_if_ended(client, leftover.endpoint);
  return false;
}

}  // namespace stp::host
