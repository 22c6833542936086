// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/service.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "libst/service/service_impl.h"
#include "stp/base/work_meter.h"

namespace stp::service {
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
  const auto limit = granted.value_or(default_granted_stus(info.receive_queue) << info.max_stu);
  config.granted_limit = (limit + shards - 1) / shards;
  config.routed = info.routed;
  config.sources = info.sources;
  config.shards = info.shards.get();
  config.shard = info.shard;
  return config;
}

}  // namespace

Service::Impl::Impl(std::unique_ptr<port::Port> of_link, std::optional<std::uint64_t> granted,
                    std::shared_ptr<Budgets> of_users)
    : allow(std::move(of_users), of_link->info().shard, shards_of(*of_link)),
      port(std::move(of_link)),
      link(*port, clients, wakes, clock.now()),
      node(node_config(port->info(), granted, windows), port::system_random()) {
  port->set_bell(bells.own());
}

Service::Service(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
                 std::shared_ptr<Budgets> budgets)
    : impl_(new Impl(std::move(port), granted, std::move(budgets))) {}
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
  return shards_of(*impl_->port);
}

// ---- clients

ClientId Service::Impl::greet(Client* client) const {
  if (client == nullptr) return 0;
  bells.greet(*client);
  link.greet(*client);
  return client->id;
}

Client* Service::Impl::present(ClientId id) {
  auto* const client = clients.find(id);
  return client == nullptr || client->leaving ? nullptr : client;
}

ClientId Service::add_client(bool privileged) {
  return impl_->greet(impl_->clients.add(privileged));
}

ClientId Service::add_client(const ClientIdentity& identity, bool operating, std::string& why) {
  const auto place = operating ? ClientTable::Place::kOperator : ClientTable::Place::kOwn;
  return impl_->greet(impl_->clients.add(identity, place, why));
}

ClientId Service::add_client_of_link(const ClientIdentity& identity,
                                     std::shared_ptr<ProgramUse> use, std::string& why) {
  auto* const client = impl_->clients.add(identity, ClientTable::Place::kKnown, why);
  if (client != nullptr && use != nullptr) client->use = std::move(use);
  return impl_->greet(client);
}

std::shared_ptr<ProgramUse> Service::use_of(ClientId id) const {
  const auto* const client = impl_->clients.find(id);
  return client == nullptr ? nullptr : client->use;
}

void Service::identify(ClientId id, const ClientIdentity& identity) {
  if (auto* const client = impl_->clients.find(id); client != nullptr)
    impl_->clients.identify(*client, identity);
}

void Service::remove_client(ClientId id) {
  auto* const client = impl_->present(id);
  if (client == nullptr) return;
  impl_->removal.begin(*client);
  impl_->removal.go_on();
  impl_->handle_events();
  impl_->bells.ring_own();
}

std::size_t Service::client_count() const {
  return impl_->clients.size();
}
std::optional<ClientId> Service::next_expelled() {
  return impl_->removal.next_expelled();
}
int Service::expelled_fd() const {
  return impl_->removal.expelled_fd();
}

// ---- what they may do

const Budgets& Service::budgets() const {
  return impl_->allow.budgets();
}
void Service::set_quotas(const Quotas& quotas) {
  impl_->allow.set_quotas(quotas);
}
void Service::set_process_totals(std::uint64_t mappings, std::uint64_t files) {
  impl_->allow.set_process_totals(mappings, files);
}
void Service::reserve_files_from(int first) {
  impl_->allow.reserve_files_from(first);
}
void Service::offer_memory(std::shared_ptr<UserWorkers> workers) {
  impl_->offers.begin(std::move(workers));
}
std::shared_ptr<SharedMemory> Service::offered(ClientId id, VcId vc, Account& payer) const {
  const auto* const client = impl_->clients.find(id);
  if (client == nullptr || client->leaving) return nullptr;
  payer = impl_->allow.payer(client->identity.uid).account;
  if (vc == kNoneId) return client->offered_page;
  const auto* const channel = client->channels.of(vc);
  return channel == nullptr ? nullptr : channel->offered;
}
void Service::set_port_rules(PortRules rules) {
  impl_->endpoints.set_port_rules(std::move(rules));
}

// ---- what is reported

std::optional<LinkChange> Service::next_link_change() {
  return impl_->link.next_change();
}
void Service::add_counters(std::function<std::vector<port::PortCounter>()> counters) {
  impl_->inspection.add_counters(std::move(counters));
}
std::vector<port::PortCounter> Service::all_counters() const {
  return impl_->inspection.all_counters();
}

// ---- turns

Time Service::now() {
  return impl_->clock.now();
}

unsigned Service::poll() {
  work::Hold const turn("one turn of a link");
  auto& of = *impl_;
  const auto rung = of.bells.collect(
      [&of](const Client& client, Bell number) { return of.connections.kick(client, number); });
  const auto moved = of.port->poll(of.node, of.clock.now());
  of.link.turn(of.clock.now());
  of.removal.expel_torn();
  if (moved == 0) of.node.idle();
  const auto events = of.handle_events();
  const auto cleaned = of.removal.go_on();
  return moved + (rung || events || cleaned ? 1 : 0);
}

void Service::kick(ClientId id, std::uint32_t bell) {
  if (const auto* const client = impl_->present(id); client != nullptr)
    impl_->connections.kick(*client, bell);
}

Time Service::next_deadline() const {
  return std::min(impl_->node.next_deadline(), impl_->bells.silent_until());
}

// ---- bells and sleeping

int Service::bell() const {
  return impl_->bells.own();
}
int Service::bell_of(ClientId id, int& out) {
  auto* const client = impl_->present(id);
  return client == nullptr ? -EBADF : impl_->bells.of(*client, impl_->allow, out);
}
void Service::close_bells_by(std::function<void(uid_t, UniqueFd)> close) {
  impl_->bells.close_by(std::move(close));
}
std::uint64_t Service::silenced_bells() const {
  return impl_->bells.silences();
}

bool Service::prepare_to_sleep() {
  if (impl_->bells.fall_asleep() && impl_->port->prepare_to_sleep()) return true;
  woke_up();
  return false;
}

void Service::sleep(int wake_fd, Time length) {
  impl_->bells.sleep(wake_fd, length);
}

void Service::woke_up() {
  impl_->port->woke_up();
  impl_->bells.wake_up();
}

}  // namespace stp::service
