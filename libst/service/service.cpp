// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/service.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "libst/service/service_impl.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

// STUs of at least this length are attached to their frames, if the driver can do it. Copying a
// shorter one costs less than a second segment of the frame.
constexpr std::size_t kAttachFrom = 1'024;

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
  const auto limit = granted.value_or(default_granted_stus(info.receive_queue) << info.max_stu);
  config.granted_limit = (limit + shards - 1) / shards;
  config.shards = info.shards.get();
  config.shard = info.shard;
  return config;
}

}  // namespace

Service::Impl::Impl(std::unique_ptr<port::Port> link, std::optional<std::uint64_t> granted,
                    std::shared_ptr<Budgets> of_link)
    : bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      bells(::epoll_create1(EPOLL_CLOEXEC)),
      budgets(of_link ? std::move(of_link) : std::make_shared<Budgets>()),
      expelled_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port(std::move(link)),
      link_state(port->state()),
      link_address(port->info().address),
      node(node_config(port->info(), granted, windows), port::system_random()) {
  if (!bell || !bells || !expelled_fd || watch_bell(EPOLL_CTL_ADD, bell.get(), 0, true) != 0)
    throw std::system_error(errno, std::generic_category(), "eventfd");
  port->set_bell(bell.get());
  link_state_since = clock.now();
  if (link_state != port::LinkState::kUp) note_link_change();
}

Service::Service(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
                 std::shared_ptr<Budgets> budgets)
    : impl_(new Impl(std::move(port), granted, std::move(budgets))) {
  set_quotas({});
}
Service::~Service() = default;
DriveLock& Service::lock() {
  return impl_->lock;
}
port::Port& Service::port() {
  return *impl_->port;
}
Node& Service::node() {
  return impl_->node;
}
unsigned Service::shards() const {
  const auto& shards = impl_->port->info().shards;
  return shards ? shards->count() : 1;
}
int Service::bell() const {
  return impl_->bell.get();
}
std::uint64_t Service::silenced_bells() const {
  return impl_->silences;
}
Time Service::next_deadline() const {
  return std::min(impl_->node.next_deadline(), impl_->silent_until);
}

// ---- clients ----

// A channel's cookie has 32 bits for its client, so ids wrap around. Ids in use are skipped.
ClientId Service::Impl::unused_id() {
  return last_client = next_client_id(last_client, clients);
}

Client* Service::Impl::make_client(bool privileged) {
  auto page = SharedMemory::create("stp-client", sizeof(ClientPage));
  if (!page) return nullptr;
  const auto id = unused_id();
  STP_ASSERT(id != 0 && !clients.contains(id), "a new client has an id of its own");
  auto& client = clients[id];
  client.id = id;
  client.privileged = privileged;
  client.page_memory = std::move(page);
  client.page().magic = kClientPageMagic;
  client.page().version = kProtocolVersion;
  client.page().service_asleep.store(asleep ? 1 : 0);
  tell_link_state(client);
  return &client;
}

void Service::Impl::pay_by(Client& client, uid_t uid) {
  const bool trusted = uid == 0 || uid == ::geteuid() || uid == kUnknownUser;
  client.account = budgets->account(uid, trusted);
  client.ports = own_ports->account(uid, trusted);
}

ClientId Service::add_client(bool privileged) {
  auto* const client = impl_->make_client(privileged);
  if (client == nullptr) return 0;
  impl_->pay_by(*client, kUnknownUser);
  return client->id;
}

ClientId Service::add_client(const ClientIdentity& identity, bool operating, std::string& why) {
  return impl_->add_paying(identity, operating, false, why);
}

ClientId Service::add_client_of_link(const ClientIdentity& identity,
                                     std::shared_ptr<ProgramUse> use, std::string& why) {
  const auto id = impl_->add_paying(identity, false, true, why);
  if (id != 0 && use != nullptr) impl_->client(id)->use = std::move(use);
  return id;
}

std::shared_ptr<ProgramUse> Service::use_of(ClientId id) const {
  auto* const client = impl_->client(id);
  return client == nullptr ? nullptr : client->use;
}

// `known`: another shard has the program as a client, and has paid for its place, its socket and
// its process descriptor.
ClientId Service::Impl::add_paying(const ClientIdentity& identity, bool operating, bool known,
                                   std::string& why) {
  Client paying;
  pay_by(paying, identity.uid);
  Reservation place, page, files;
  const auto reserve = [&](Resource resource, std::uint64_t amount, Reservation& out) {
    if (paying.account.reserve(resource, amount, out)) return true;
    why = paying.account.refusal(resource);
    errno = EDQUOT;
    return false;
  };
  // Files: the page and the bell, and once per program its socket and its process descriptor. The
  // few places of operators cost nothing.
  const auto of_program = known ? 0U : 1U;
  if (!operating && ((!known && !reserve(Resource::kClients, 1, place)) ||
                     !reserve(Resource::kMappings, 1, page) ||
                     !reserve(Resource::kFiles, 2 + 2 * of_program, files)))
    return 0;
  auto* const client = make_client(identity.uid == 0);
  if (client == nullptr) return 0;
  client->account = std::move(paying.account);
  client->ports = std::move(paying.ports);
  client->place = std::move(place);
  client->page_memory->charge(std::move(files), std::move(page));
  client->identity = identity;
  return client->id;
}

void Service::remove_client(ClientId id) {
  auto* const client = impl_->client(id);
  if (client == nullptr || client->leaving) return;
  impl_->leave(*client);
  impl_->clean_up();
  impl_->handle_events();
  impl_->ring_own_bell();
}

std::size_t Service::client_count() const {
  return impl_->clients.size();
}

std::optional<ClientId> Service::next_expelled() {
  if (impl_->expelled.empty()) return std::nullopt;
  const auto id = impl_->expelled.front();
  impl_->expelled.pop_front();
  return id;
}

int Service::expelled_fd() const {
  return impl_->expelled_fd.get();
}

const Budgets& Service::budgets() const {
  return *impl_->budgets;
}

void Service::set_quotas(const Quotas& quotas) {
  impl_->quotas = quotas;
  const auto memory =
      static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L)) * service::page_size();
  const auto bytes = [&](std::uint64_t chosen, std::uint64_t part) {
    return chosen != 0 ? chosen : memory / part;
  };
  auto& budgets = *impl_->budgets;
  budgets.set_share(quotas.user_share);
  budgets.set_total(Resource::kClients, quotas.clients);
  budgets.set_total(Resource::kEndpoints, quotas.total_endpoints);
  budgets.set_total(Resource::kConnections, limits::kTotalPorts);
  impl_->own_ports->set_share(quotas.user_share);
  if (shards() > 1)
    impl_->own_ports->set_total(Resource::kConnections, limits::kTotalPorts / shards());
  budgets.set_total(Resource::kRegions, quotas.total_regions);
  budgets.set_total(Resource::kMx, limits::kTotalMxs);
  budgets.set_total(Resource::kQueueBytes, bytes(quotas.total_queue_bytes, limits::kQueuePart));
  budgets.set_total(Resource::kMappedBytes, bytes(quotas.total_mapped_bytes, limits::kMappedPart));
  budgets.set_total(Resource::kTableBytes, bytes(quotas.total_table_bytes, limits::kTablePart));
  budgets.set_total(Resource::kWindowBytes, bytes(quotas.total_window_bytes, limits::kWindowPart));
}

void Service::set_process_totals(std::uint64_t mappings, std::uint64_t files) {
  impl_->budgets->set_total(Resource::kMappings, mappings);
  impl_->budgets->set_total(Resource::kFiles, files);
}

void Service::set_port_rules(PortRules rules) {
  impl_->port_rules = std::move(rules);
}

void Service::reserve_files_from(int first) {
  impl_->first_reserved_file = first;
}

Client* Service::Impl::client(ClientId id) {
  const auto at = clients.find(id);
  return at == clients.end() ? nullptr : &at->second;
}

// ---- turns ----

Time Service::now() {
  return impl_->clock.now();
}

unsigned Service::poll() {
  work::Hold const turn("one turn of a link");
  const auto rung = impl_->collect_bells();
  const auto moved = impl_->port->poll(impl_->node, impl_->clock.now());
  if (const auto now = impl_->clock.now(); now >= impl_->look_at_link_at) impl_->look_at_link(now);
  impl_->expel_torn();
  if (moved == 0) impl_->node.idle();
  const auto events = impl_->handle_events();
  const auto cleaned = impl_->clean_up();
  return moved + (rung || events || cleaned ? 1 : 0);
}

void Service::kick(ClientId id, std::uint32_t bell) {
  if (auto* const client = impl_->client(id); client != nullptr && !client->leaving)
    impl_->kick(*client, bell);
}

// Returns true if the channel's transmit queue has new entries. The user writes the head of the
// queue, so it counts only if it is ahead of the last one seen here: a client that moves it back
// and forth posts nothing.
bool Service::Impl::kick(const Client& client, Bell number) {
  auto* const channel = client.channel(number);
  if (channel == nullptr || channel->vc == kNoneId) return false;
  node.kick(channel->vc);
  const auto head = channel->control().tx_head.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(head - channel->rung_head) <= 0) return false;
  channel->rung_head = head;
  return true;
}

bool Service::Impl::collect_bells() {
  if (silent_until != kNever && clock.now() >= silent_until) end_silences();
  bool any = false;
  for (auto& entry : clients) {
    work::count("clients");
    if (!entry.second.leaving) any |= collect_bells_of(entry.second);
  }
  return any;
}

// Returns true if the client's bells are a reason to stay awake.
bool Service::Impl::collect_bells_of(Client& client) {
  const auto channels = static_cast<std::uint32_t>(client.channels.size());
  bool reason = false;
  const auto rang = client.page().bells.collect(channels, client.rung, [&](Bell number) {
    work::count("bells");
    reason |= kick(client, number);
  });
  if (!rang || !client.bell_file) return rang;  // a client in this process needs no bell credit
  if (reason)
    client.bell_credit.rang_with_reason();
  else
    rang_in_vain(client);
  return reason || !client.bell_credit.silent();
}

bool Service::Impl::any_bell() const {
  for (auto& [id, client] : clients) {
    const auto channels = static_cast<std::uint32_t>(client.channels.size());
    if (!client.leaving && !client.bell_credit.silent() && client.page().bells.any(channels))
      return true;
  }
  return false;
}

bool Service::prepare_to_sleep() {
  impl_->asleep = true;
  for (auto& [id, client] : impl_->clients) client.page().service_asleep.store(1);
  if (!impl_->any_bell() && impl_->port->prepare_to_sleep()) return true;
  woke_up();
  return false;
}

void Service::woke_up() {
  impl_->asleep = false;
  impl_->port->woke_up();
  for (auto& [id, client] : impl_->clients) client.page().service_asleep.store(0);
  impl_->hear_bells();
}

void Service::Impl::ring_own_bell() {
  if (!asleep) return;
  std::uint64_t const one = 1;
  // Fails only if the counter is full; then the bell is readable already.
  [[maybe_unused]] const auto put = ::write(bell.get(), &one, sizeof one);
}

}  // namespace stp::service
