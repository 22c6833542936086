// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/service.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "dpdk_port/dpdk/turn_clock.h"
#include "dpdk_port/link/interfaces.h"
#include "libst/host/bells.h"
#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "libst/host/endpoints.h"
#include "libst/host/inspection.h"
#include "libst/ipc/requests.h"
#include "stp/base/assert.h"
#include "stp/base/scarce_memory.h"
#include "stp/base/work_meter.h"

namespace stp::host {

void DriveLock::wait(std::uint32_t ticket) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  Lock guard(mutex_);
  while (serving_.load() != ticket) guard.wait(called_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

// Wakes all waiters: only the next ticket may continue, and notify_one() might wake another one.
void DriveLock::call() {
  { const Lock guard(mutex_); }  // each waiter sleeps now, or will still check serving_
  called_.notify_all();
}

// A Service is composed of mechanisms, each with its own header. The Impl routes turns, requests
// and events to them.
struct DrivenService::Impl {
  Impl(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
       std::shared_ptr<Budgets> budgets);

  // Returns the id of a client that was just added; 0 for nullptr.
  ClientId greet(Client* client) const;
  // nullptr: no such client, or it leaves.
  Client* present(ClientId id);

  // Requests of programs. They return 0 or a negative errno. For each there is an answer() with its
  // struct, which passes it to the mechanism that does the work.
  int answer(Client& client, const ipc::RequestMessage& message, Attachments& attachments,
             ipc::ReplyMessage& reply);
  struct From {
    Client& client;
    Attachments& attachments;
  };
  int answer(From from, const ask::Hello& request, ask::Hello::Reply& reply);
  int answer(From from, const ask::OpenEndpoint& request, ask::OpenEndpoint::Reply& reply) {
    return endpoints.open(from.client, request, reply);
  }
  int answer(From from, const ask::Configure& request, ask::Configure::Reply& reply) {
    return endpoints.configure(from.client, request, reply.config);
  }
  int answer(From from, const ask::EndpointConfig& request, ask::EndpointConfig::Reply& reply) {
    return endpoints.config(from.client, request.endpoint, reply.config);
  }
  int answer(From from, const ask::CloseEndpoint& request, ipc::Nothing&) {
    return endpoints.close(from.client, request.endpoint);
  }
  int answer(From from, const ask::Listen& request, ipc::Nothing&) {
    return endpoints.listen(from.client, request);
  }
  int answer(From from, const ask::Unlisten& request, ipc::Nothing&) {
    return endpoints.unlisten(from.client, request.endpoint);
  }
  int answer(From from, const ask::Accept& request, ask::Accept::Reply& reply) {
    return connections.accept(from.client, request.endpoint, from.attachments, reply);
  }
  int answer(From from, const ask::Connect& request, ask::Connect::Reply& reply) {
    return connections.connect(from.client, request, from.attachments, reply.channel);
  }
  int answer(From from, const ask::Backlog& request, ask::Backlog::Reply& reply) {
    return connections.backlog(from.client, request.endpoint, reply.waiting);
  }
  int answer(From from, const ask::Decide& request, ipc::Nothing&) {
    return connections.decide(from.client, request);
  }
  int answer(From from, const ask::OpenPort& request, ask::OpenPort::Reply& reply) {
    return connections.open_port(from.client, request.endpoint, from.attachments, reply.channel);
  }
  int answer(From from, const ask::VcInfo& request, ask::VcInfo::Reply& reply);
  int answer(From from, const ask::Close& request, ipc::Nothing&) {
    return connections.close(from.client, request);
  }
  int answer(From from, const ask::Map& request, ask::Map::Reply& reply) {
    return regions.map(from.client, request, from.attachments, reply);
  }
  int answer(From from, const ask::Unmap& request, ipc::Nothing&);
  int answer(From from, const ask::Settle& request, ipc::Nothing&) {
    return regions.settle(from.client, request.region);
  }
  int answer(From from, const ask::AllocMx& request, ask::AllocMx::Reply& reply) {
    return regions.alloc_mx(from.client, request, reply);
  }
  int answer(From from, const ask::FreeMx& request, ipc::Nothing&) {
    return regions.free_mx(from.client, request);
  }
  int answer(From from, const ask::Resolve& request, ask::Resolve::Reply& reply);
  bool is_of_link(const port::InternetAddress& address, Time now);
  int answer(From from, const ask::Trouble& request, ask::Trouble::Reply& reply);
  int answer(From /*from*/, const ask::LinkState& /*request*/, ask::LinkState::Reply& reply) {
    link.answer(reply, clock.now());
    return 0;
  }
  int answer(From from, const ask::Mapped& request, ipc::Nothing&);

  // Handles a bounded number of events, and wakes who waits for them. Returns true if there were
  // any; more may be left.
  bool handle_events();
  void handle_event(const Event& event);
  void accept_ready(EndpointId id);
  // `in_turn`: next_low() has named it.
  void stock_low(EndpointId id, bool in_turn = false);
  // Adds a channel to the stock of one listener. False: none lacks any.
  bool restock_next();
  void vc_over(std::uint64_t cookie);
  void vc_gone(VcId vc, std::uint64_t cookie);
  void region_gone(RegionId id);

  port::TurnClock clock;  // the Node's only source of time; under the drive lock
  Allowances allow;
  ClientTable clients{allow};
  Bells bells{clients, clock};
  // Frames that the device still sends may refer to memory of clients, and it rings our bell: so it
  // is destroyed before them.
  std::unique_ptr<port::Port> port;
  port::HostAddresses addresses;
  Wakes wakes{clients};
  LinkWatch link;
  WindowAccounts windows{clients};
  Leftovers leftovers;
  Offers offers;
  Connections connections{node, allow, offers, leftovers, wakes, clock};
  Endpoints endpoints{node, allow, connections, leftovers};
  Regions regions{node, allow, leftovers};
  Removal removal{clients, bells, connections, regions, endpoints, leftovers};
  Inspection inspection{*port, node, clients, regions, allow, link};
  Node node;  // destroyed first: it uses memory of clients, and the port
};

namespace {

// STUs of at least this length are attached to their frames, if the driver can do it. Copying a
// shorter one costs less than a second segment of the frame.
constexpr std::size_t kAttachFrom = 1'024;

unsigned shards_of(const port::Port& port) {
  const auto& shards = port.info().shards;
  return shards ? shards->count() : 1;
}

NodeConfig node_config(const port::PortInfo& info, std::optional<std::uint64_t> granted,
                       WindowBudget& windows) {
  NodeConfig config;
  config.windows = &windows;
  config.mac = info.mac;
  config.max_stu = info.max_stu;
  port::LinkConfig link;
  std::string error;
  if (port::parse_link(info.link, link, error)) config.vlan = link.vlan;
  if (info.attaches) config.attach_from = kAttachFrom;
  // The limit is for the link as a whole: each shard gets an equal part.
  const std::uint64_t shards = info.shards ? info.shards->count() : 1;
  const auto limit = granted ? GrantedBytes{*granted, *granted}
                             : default_granted(info.receive_queue, info.max_stu);
  config.granted_limit = (limit.least + shards - 1) / shards;
  config.granted_most = (limit.most + shards - 1) / shards;
  config.routed = info.routed;
  config.ways = info.ways;
  config.marks = info.marks;
  // protocol: 13.20
  config.padded_requests = info.internet;
  config.sources = info.sources;
  config.shards = info.shards.get();
  config.shard = info.shard;
  return config;
}

}  // namespace

DrivenService::Impl::Impl(std::unique_ptr<port::Port> of_link, std::optional<std::uint64_t> granted,
                          std::shared_ptr<Budgets> of_users)
    : allow(std::move(of_users), of_link->info().shard, shards_of(*of_link)),
      port(std::move(of_link)),
      link(*port, clients, wakes, clock.now()),
      node(node_config(port->info(), granted, windows), port::system_random()) {
  port->set_bell(bells.own());
}

DrivenService::DrivenService(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
                             std::shared_ptr<Budgets> budgets)
    : impl_(new Impl(std::move(port), granted, std::move(budgets))) {}
DrivenService::~DrivenService() = default;
port::Port& DrivenService::port() {
  return *impl_->port;
}
Node& DrivenService::node() {
  return impl_->node;
}

Service::Service(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
                 std::shared_ptr<Budgets> budgets)
    : driven_(std::move(port), granted, std::move(budgets)) {}
const port::PortInfo& Service::info() const {
  return driven_.impl_->port->info();
}

// ---- clients

ClientId DrivenService::Impl::greet(Client* client) const {
  if (client == nullptr) return 0;
  bells.greet(*client);
  link.greet(*client);
  return client->id;
}

Client* DrivenService::Impl::present(ClientId id) {
  auto* const client = clients.find(id);
  return client == nullptr || client->leaving ? nullptr : client;
}

ClientId DrivenService::add_client(bool privileged) {
  return impl_->greet(impl_->clients.add(privileged));
}

ClientId DrivenService::add_client(const ipc::ClientIdentity& identity, bool operating,
                                   std::string& why) {
  const auto place = operating ? ClientTable::Place::kOperator : ClientTable::Place::kOwn;
  return impl_->greet(impl_->clients.add(identity, place, why));
}

ClientId DrivenService::add_client_of_link(const ipc::ClientIdentity& identity,
                                           std::shared_ptr<ProgramUse> use, std::string& why) {
  auto* const client = impl_->clients.add(identity, ClientTable::Place::kKnown, why);
  if (client != nullptr && use != nullptr) client->use = std::move(use);
  return impl_->greet(client);
}

std::shared_ptr<ProgramUse> DrivenService::use_of(ClientId id) const {
  const auto* const client = impl_->clients.find(id);
  return client == nullptr ? nullptr : client->use;
}

void DrivenService::remove_client(ClientId id) {
  auto* const client = impl_->present(id);
  if (client == nullptr) return;
  impl_->removal.begin(*client);
  impl_->removal.go_on();
  impl_->handle_events();
  impl_->bells.ring_own();
}

std::size_t DrivenService::client_count() const {
  return impl_->clients.size();
}
std::optional<ClientId> DrivenService::next_expelled() {
  return impl_->removal.next_expelled();
}
int Service::expelled_fd() const {
  return driven_.impl_->removal.expelled_fd();
}

// ---- what they may do

void DrivenService::set_quotas(const Quotas& quotas) {
  impl_->allow.set_quotas(quotas);
}
void DrivenService::set_process_totals(std::uint64_t mappings, std::uint64_t files) {
  impl_->allow.set_process_totals(mappings, files);
}
void DrivenService::reserve_files_from(int first) {
  impl_->allow.reserve_files_from(first);
}
void DrivenService::offer_memory(Offers::ReleaseElsewhere release) {
  impl_->offers.begin(std::move(release));
}
std::shared_ptr<ipc::SharedMemory> DrivenService::offered(ClientId id, VcId vc,
                                                          Account& payer) const {
  const auto* const client = impl_->clients.find(id);
  if (client == nullptr || client->leaving) return nullptr;
  payer = impl_->allow.payer(client->identity.uid).account;
  if (vc == kNoneId) return client->offered_page;
  const auto* const channel = client->channels.of(vc);
  return channel == nullptr ? nullptr : channel->offered;
}
void DrivenService::set_port_rules(PortRules rules) {
  impl_->endpoints.set_port_rules(std::move(rules));
}

// ---- what is reported

std::optional<LinkChange> DrivenService::next_link_change() {
  return impl_->link.next_change();
}
void DrivenService::add_counters(std::function<std::vector<port::PortCounter>()> counters) {
  impl_->inspection.add_counters(std::move(counters));
}
void DrivenService::add_trouble(std::function<std::string()> trouble) {
  impl_->inspection.add_trouble(std::move(trouble));
}
std::vector<port::PortCounter> DrivenService::all_counters() const {
  return impl_->inspection.all_counters();
}

// ---- turns

Time DrivenService::now() {
  return impl_->clock.now();
}

Time DrivenService::last_turn() const {
  return impl_->clock.last();
}

unsigned DrivenService::poll(std::uint32_t gatherer, Time present) {
  work::Hold const turn("one turn of a link");
  auto& of = *impl_;
  of.wakes.visit(gatherer);
  const auto rung = of.bells.collect(
      [&of](const Client& client, Bell number) { return of.connections.kick(client, number); },
      [&of](const Client& client, Bell first, std::uint64_t bits) {
        of.connections.fetch_ahead(client, first, bits);
      });
  const auto now = present != 0 ? of.clock.heed(present) : of.clock.now();
  const auto moved = of.port->poll(of.node, now);
  of.link.turn(now);
  of.removal.expel_torn();
  if (moved == 0) of.node.idle();
  const auto events = of.handle_events();
  const auto cleaned = of.removal.go_on();
  const auto restocked = of.restock_next();
  return moved + (rung || events || cleaned || restocked ? 1 : 0);
}

void DrivenService::kick(ClientId id, std::uint32_t bell) {
  if (const auto* const client = impl_->present(id); client != nullptr)
    impl_->connections.kick(*client, bell);
}

Time DrivenService::next_deadline() const {
  return std::min(impl_->node.next_deadline(), impl_->bells.silent_until());
}

// ---- bells and sleeping

int Service::bell() const {
  return driven_.impl_->bells.own();
}
int DrivenService::bell_of(ClientId id, int& out) {
  auto* const client = impl_->present(id);
  return client == nullptr ? -EBADF : impl_->bells.of(*client, impl_->allow, out);
}
void DrivenService::close_bells_by(std::function<void(uid_t, os::UniqueFd)> close) {
  impl_->bells.close_by(std::move(close));
}
std::uint64_t Service::silenced_bells() const {
  return driven_.impl_->bells.silences();
}

bool DrivenService::prepare_to_sleep() {
  if (impl_->bells.fall_asleep() && impl_->port->prepare_to_sleep()) return true;
  woke_up();
  return false;
}

bool Service::sleep(int wake_fd, Time length) {
  return driven_.impl_->bells.sleep(wake_fd, length);
}

void DrivenService::woke_up() {
  impl_->port->woke_up();
  impl_->bells.wake_up();
}

// Requests of clients, passed to the mechanism that answers them.

void DrivenService::handle(ClientId id, const ipc::RequestMessage& request,
                           Attachments& attachments, ipc::ReplyMessage& reply) {
  reply.head = {.kind = request.head.kind};
  auto* const client = impl_->present(id);
  if (client == nullptr) {
    reply.refuse(-EBADF);
  } else if (request.head.version != ipc::kProtocolVersion) {
    reply.refuse(-EPROTONOSUPPORT);
  } else {
    impl_->allow.answer(reply, [&] { return impl_->answer(*client, request, attachments, reply); });
  }
  impl_->handle_events();
  impl_->bells.ring_own();
}

int DrivenService::claim_region(ClientId id, const ask::Map& request, std::uint64_t bytes,
                                std::size_t files, RegionClaim& out, ipc::ReplyMessage& reply) {
  return impl_->allow.answer(reply, [&] {
    auto* const client = impl_->present(id);
    return client == nullptr ? -EBADF : impl_->regions.claim(*client, request, bytes, files, out);
  });
}

void DrivenService::watch(const ipc::ClientIdentity& identity, const ipc::RequestMessage& message,
                          ipc::ReplyMessage& reply) {
  reply.head = {.kind = message.head.kind};
  const Viewer viewer{.id = 0, .identity = identity};
  impl_->allow.answer(reply, [&] {
    return ipc::dispatch(message, [&]<typename R>(const R& request) {
      if constexpr (ipc::kRuleOf<R>.who == ipc::Who::kWatcher)
        return impl_->inspection.answer(viewer, request, reply.begin<R>());
      return -EINVAL;
    });
  });
}

namespace {

// What a request ends has gone, whether there is memory to write that down or not.
template <typename R>
constexpr bool kEnds = std::is_same_v<R, ask::CloseEndpoint> || std::is_same_v<R, ask::Unlisten> ||
                       std::is_same_v<R, ask::Close> || std::is_same_v<R, ask::Unmap> ||
                       std::is_same_v<R, ask::FreeMx> || std::is_same_v<R, ask::Decide>;

template <typename Work>
int with_what_is_kept(Work&& work) {
  const Needed to_the_end;
  return work();
}

}  // namespace

int DrivenService::Impl::answer(Client& client, const ipc::RequestMessage& message,
                                Attachments& attachments, ipc::ReplyMessage& reply) {
  const From from{client, attachments};
  return ipc::dispatch(message, [&]<typename R>(const R& request) {
    if constexpr (ipc::kRuleOf<R>.where == ipc::Where::kDaemon)
      return -EOPNOTSUPP;  // whoever owns the service answers these
    else if constexpr (ipc::kRuleOf<R>.who == ipc::Who::kWatcher)
      return inspection.answer({.id = client.id, .identity = client.identity}, request,
                               reply.begin<R>());
    else if constexpr (kEnds<R>)
      return with_what_is_kept([&] { return answer(from, request, reply.begin<R>()); });
    else
      return answer(from, request, reply.begin<R>());
  });
}

int DrivenService::Impl::answer(From from, const ask::Hello& /*request*/,
                                ask::Hello::Reply& reply) {
  auto& client = from.client;
  const auto& info = port->info();
  reply.mac = info.mac.to_u64();
  reply.mtu = info.mtu;
  reply.max_stu = info.max_stu;
  if (info.address) reply.ipv4 = info.address->value;
  reply.shards = info.shards ? info.shards->count() : 1;
  reply.udp_port = info.udp_port;
  reply.peer_udp_port = info.peer_udp_port;
  reply.internet = info.internet ? 1 : 0;
  reply.ipv6 = info.ipv6 ? 1 : 0;
  reply.one_address = info.one_address ? 1 : 0;
  ipc::set_text(reply.link, info.link);
  if (offers.wanted() && client.page_memory->fd() < 0 && client.offered_page == nullptr) {
    client.offered_page = offers.make(client.identity.uid, "stp-client", sizeof(ipc::ClientPage));
    if (client.offered_page == nullptr) return -errno;
    if (const auto error = allow.check_file(client.offered_page->fd()); error != 0) {
      client.offered_page = nullptr;
      return error;
    }
    client.offered_page->charge(kept(std::move(client.files)), kept(std::move(client.mapping)));
  }
  from.attachments.memory = client.offered_page ? client.offered_page : client.page_memory;
  return 0;
}

// The client has mapped what it was offered, and can take none of its pages away any more.
int DrivenService::Impl::answer(From from, const ask::Mapped& request, ipc::Nothing&) {
  auto& client = from.client;
  if (request.vc != kNoneId) return connections.mapped(client, request.vc);
  if (client.offered_page == nullptr) return 0;  // it has said so before
  const auto accepts = client.page().accepts.load();
  clients.take_back(std::exchange(client.page_memory, std::move(client.offered_page)));
  client.offered_page = nullptr;
  client.page().begin(ipc::kProtocolVersion);
  client.page().accepts.store(accepts);
  bells.greet(client);
  link.greet(client);
  return 0;
}

int DrivenService::Impl::answer(From from, const ask::VcInfo& request, ask::VcInfo::Reply& reply) {
  const auto error = connections.info(from.client, request.vc, reply.facts);
  if (error == 0)
    ipc::set_text(reply.peer, port->name_of_station(MacAddr::from_u64(reply.facts.mac)));
  return error;
}

// The text is longer than a reply: the client asks for it part by part.
int DrivenService::Impl::answer(From /*from*/, const ask::Trouble& request,
                                ask::Trouble::Reply& reply) {
  const auto station = MacAddr::from_u64(request.mac);
  const auto text = station.is_zero() ? port->trouble() : port->trouble_of(station);
  reply.gone = !station.is_zero() && port->is_reported_gone(station) ? 1 : 0;
  ipc::set_text(reply.text, std::string_view(text).substr(std::min(request.from, text.size())));
  return 0;
}

// An address of this host is the link's. Not of a link at one address: another one may be that of
// another link, and the port knows its own.
bool DrivenService::Impl::is_of_link(const port::InternetAddress& address, Time now) {
  const auto& info = port->info();
  const auto udp_port = address.port != 0 ? address.port : info.peer_udp_port;
  if (info.one_address || udp_port != info.udp_port) return false;
  const auto four = address.ipv4();
  if (address.is_loopback() || (four && four == info.address)) return true;
  return addresses.has(address, info.interface, now);
}

static port::InternetAddress address_in(const ask::Resolve& request) {
  auto address = port::InternetAddress::of(port::Ipv4{request.ipv4}, 0);
  if (request.ipv4 == 0) std::ranges::copy(request.ip, address.ip.begin());
  address.port = static_cast<std::uint16_t>(request.udp_port);
  return address;
}

// Resolving an unknown address costs an ARP broadcast, and a place in a small table that all
// clients share; over UDP a new address costs such a place. So a program may ask for 16 of these at
// once and for 100 per second. Over UDP a known one costs a few system calls: it may ask for ten
// times as many of these. Beyond that it gets -EAGAIN, and nothing is sent.
int DrivenService::Impl::answer(From from, const ask::Resolve& request,
                                ask::Resolve::Reply& reply) {
  constexpr Time kPerQuestion = 10 * kMillisecond, kAhead = 16 * kPerQuestion;
  const auto& info = port->info();
  const auto now = clock.now();
  auto address = address_in(request);
  const std::string zone(ipc::text_of(request.zone));
  if (zone.empty() && is_of_link(address, now)) {
    reply.mac = info.mac.to_u64();
    return 0;
  }
  auto& asked_until = from.client.use->asked_until;
  if (asked_until > now + kAhead) return -EAGAIN;
  const auto scope = zone.empty() ? std::optional(0U) : addresses.index_of(zone, now);
  if (!scope) return -EAGAIN;
  address.scope = *scope;
  const bool is_known = zone.empty() || address.scope != 0;
  bool is_new = false;
  const auto mac = !is_known                  ? std::nullopt
                   : is_of_link(address, now) ? std::optional(info.mac)
                                              : port->find_station(address, now, &is_new);
  const auto costs = is_new || !mac ? kPerQuestion : info.internet ? kPerQuestion / 10 : 0;
  if (costs != 0) asked_until = std::max(asked_until.load(), now) + costs;
  if (!is_known) return -ENODEV;
  if (!mac) return info.internet ? -EHOSTUNREACH : -EAGAIN;
  reply.mac = mac->to_u64();
  return 0;
}

// The region's id stays valid until the result is 0, so a client that got -EINPROGRESS can repeat
// the request.
int DrivenService::Impl::answer(From from, const ask::Unmap& request, ipc::Nothing&) {
  auto& client = from.client;
  const auto id = request.region;
  auto* const region = client.region(id);
  if (region == nullptr || client.endpoint(region->endpoint) == nullptr) return -EBADF;
  regions.start_unmap(id, *region);
  handle_events();
  if (region->state != RegionState::kGone) return -EINPROGRESS;
  removal.go_on();
  Regions::forget(client, id);
  return 0;
}

// Events of the Node, passed to whom they concern. The client may have gone meanwhile.

bool DrivenService::Impl::handle_events() {
  constexpr int kAtOnce = 512;
  int handled = 0;
  for (Event event; handled < kAtOnce && node.next_event(event); ++handled) {
    work::count("events of a Node");
    handle_event(event);
  }
  return wakes.go_on() || handled != 0;
}

void DrivenService::Impl::handle_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kNews:
      if (const auto* const owner = clients.find(client_in(event.cookie)); owner != nullptr)
        owner->tell_news(bell_in(event.cookie));
      return;
    case Event::Kind::kWake:
      if (auto* const owner = clients.find(client_in(event.cookie)); owner != nullptr)
        wakes.channel(*owner, bell_in(event.cookie));
      return;
    case Event::Kind::kAcceptReady:
      return accept_ready(event.id);
    case Event::Kind::kStockLow:
      return stock_low(event.id);
    case Event::Kind::kVcOver:
      return vc_over(event.cookie);
    case Event::Kind::kVcGone:
      return vc_gone(event.id, event.cookie);
    case Event::Kind::kRegionGone:
      return region_gone(event.id);
  }
}

void DrivenService::Impl::accept_ready(EndpointId id) {
  const auto owner = endpoints.owner_of(id);
  if (owner == 0) return;
  STP_ASSERT(clients.find(owner) != nullptr, "an endpoint is some client's");
  auto& client = *clients.find(owner);
  client.page().accepts.fetch_add(1);
  wakes.page(client);
}

// Channels of connections that wait to be accepted count as stock, so normally there is nothing to
// do. This refills the stock of a listener for which it could not be filled earlier.
void DrivenService::Impl::stock_low(EndpointId id, bool in_turn) {
  const auto owner = endpoints.owner_of(id);
  if (owner == 0) return;
  STP_ASSERT(clients.find(owner) != nullptr, "an endpoint is some client's");
  auto& client = *clients.find(owner);
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr || client.leaving) return;
  if (in_turn)
    endpoint->low = false;
  else if (endpoint->low)
    return;  // its turn comes
  if (!endpoint->listening) return;
  // Without memory it is as if the quota were used up: fewer connections can wait.
  connections.restock_within_memory(client, id, *endpoint);
}

bool DrivenService::Impl::restock_next() {
  const auto id = connections.next_low();
  if (id) stock_low(*id, true);
  return id.has_value();
}

void DrivenService::Impl::vc_over(std::uint64_t cookie) {
  auto* const owner = clients.find(client_in(cookie));
  if (owner == nullptr) return;
  owner->tell_news(bell_in(cookie));
  wakes.page(*owner);
}

void DrivenService::Impl::vc_gone(VcId vc, std::uint64_t cookie) {
  auto* const owner = clients.find(client_in(cookie));
  if (owner == nullptr || owner->channels.at(bell_in(cookie)) == nullptr) return;
  const auto endpoint = connections.gone(*owner, vc, bell_in(cookie));
  if (endpoint == kNoneId) return;
  endpoints.erase_if_ended(*owner, endpoint);
  clients.forget_if_empty(*owner);
}

void DrivenService::Impl::region_gone(RegionId id) {
  const auto owner = regions.owner_of(id);
  if (owner == 0) return;
  STP_ASSERT(clients.find(owner) != nullptr, "a region is some client's");
  auto& client = *clients.find(owner);
  endpoints.erase_if_ended(client, regions.gone(client, id));
  clients.forget_if_empty(client);
}

}  // namespace stp::host
