// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/service.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "libst/service/service_impl.h"

namespace stp::service {
namespace {

// Where attaching is possible, an STU this long is worth it: below, a copy costs less than the
// second segment of a frame does.
constexpr std::size_t kAttachFrom = 1'024;

NodeConfig node_config(const port::PortInfo& info, std::optional<std::uint64_t> granted) {
  NodeConfig config;
  config.mac = info.mac;
  config.max_stu = info.max_stu;
  port::LinkConfig link;
  std::string error;
  if (port::parse_link(info.link, link, error)) config.vlan = link.vlan;
  if (info.attaches) config.attach_from = kAttachFrom;
  config.granted_limit = granted.value_or(kGrantedStus << info.max_stu);
  return config;
}

}  // namespace

Service::Impl::Impl(std::unique_ptr<port::Port> link, std::optional<std::uint64_t> granted)
    : bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port(std::move(link)),
      node(node_config(port->info(), granted), port::system_random()) {
  if (!bell) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Service::Service(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted)
    : impl_(new Impl(std::move(port), granted)) {}
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
int Service::bell() const {
  return impl_->bell.get();
}
Time Service::next_deadline() const {
  return impl_->node.next_deadline();
}

// ---- clients ----

ClientId Service::add_client(bool privileged) {
  auto page = SharedMemory::create("stp-client", sizeof(ClientPage));
  if (!page) return 0;
  auto const id = ++impl_->last_client;
  auto& client = impl_->clients[id];
  client.id = id;
  client.privileged = privileged;
  client.page_memory = std::move(page);
  client.page().magic = kClientPageMagic;
  client.page().version = kProtocolVersion;
  client.page().service_asleep.store(impl_->asleep ? 1 : 0);
  return id;
}

void Service::remove_client(ClientId id) {
  auto* const client = impl_->client(id);
  if (client == nullptr || client->leaving) return;
  impl_->leave(*client);
  impl_->handle_events();
  impl_->ring_own_bell();
}

std::size_t Service::client_count() const {
  return impl_->clients.size();
}

void Service::set_quotas(const Quotas& quotas) {
  impl_->quotas = quotas;
}

void Service::set_port_rules(PortRules rules) {
  impl_->port_rules = std::move(rules);
}

void Service::reserve_files_from(int first) {
  impl_->first_reserved_file = first;
}

Client* Service::Impl::client(ClientId id) {
  auto const at = clients.find(id);
  return at == clients.end() ? nullptr : &at->second;
}

void Service::Impl::leave(Client& client) {
  client.leaving = true;
  for (auto& [vc, number] : client.vcs) {
    client.channels[number]->closing = true;
    node.close(vc, true, clock.now());
  }
  for (auto& [id, region] : client.regions) start_unmap(client, id, region);
  std::vector<EndpointId> endpoints;
  for (auto& [id, endpoint] : client.endpoints)
    if (!endpoint.ending) endpoints.push_back(id);
  for (auto const id : endpoints) end_endpoint(client, id, client.endpoints.at(id));
  forget_if_empty(client);
}

void Service::Impl::forget_if_empty(Client& client) {
  if (client.leaving && client.endpoints.empty()) clients.erase(client.id);
}

// ---- turns ----

Time Service::now() {
  return impl_->clock.now();
}

unsigned Service::poll() {
  auto const rung = impl_->collect_bells();
  auto const moved = impl_->port->poll(impl_->node, impl_->clock.now());
  if (moved == 0) impl_->node.idle();
  auto const events = impl_->handle_events();
  return moved + (rung || events ? 1 : 0);
}

void Service::kick(ClientId id, std::uint32_t bell) {
  if (auto* const client = impl_->client(id); client != nullptr && !client->leaving)
    impl_->kick(*client, bell);
}

void Service::Impl::kick(const Client& client, Bell number) {
  auto const* const channel = client.channel(number);
  if (channel != nullptr && channel->vc != kNoneId) node.kick(channel->vc);
}

bool Service::Impl::collect_bells() {
  bool any = false;
  for (auto& entry : clients) {
    auto& client = entry.second;
    if (client.leaving) continue;
    auto const channels = static_cast<std::uint32_t>(client.channels.size());
    any |= client.page().bells.collect(channels, [&](Bell number) { kick(client, number); });
  }
  return any;
}

bool Service::Impl::any_bell() const {
  for (auto& [id, client] : clients)
    if (!client.leaving && client.page().bells.any()) return true;
  return false;
}

bool Service::prepare_to_sleep() {
  impl_->asleep = true;
  for (auto& [id, client] : impl_->clients) client.page().service_asleep.store(1);
  if (!impl_->any_bell()) return true;
  woke_up();
  return false;
}

void Service::woke_up() {
  impl_->asleep = false;
  for (auto& [id, client] : impl_->clients) client.page().service_asleep.store(0);
  std::uint64_t count;
  // Nothing to read is as good: the bell is silent afterwards either way.
  [[maybe_unused]] auto const got = ::read(impl_->bell.get(), &count, sizeof count);
}

void Service::Impl::ring_own_bell() {
  if (!asleep) return;
  std::uint64_t const one = 1;
  // Cannot fail but by a full counter, and then the bell rings already.
  [[maybe_unused]] auto const put = ::write(bell.get(), &one, sizeof one);
}

}  // namespace stp::service
