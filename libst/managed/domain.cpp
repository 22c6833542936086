// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/domain.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/client/links.h"
#include "libst/client/options.h"
#include "libst/client/shared_pages.h"
#include "libst/client/wait.h"
#include "libst/ipc/requests.h"
#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "libst/managed/memory.h"
#include "libst/managed/queue.h"
#include "stp/base/assert.h"

// Of LeakSanitizer, in programs that have it: where to look for pointers, beside the heap.
extern "C" {
[[gnu::weak]] void __lsan_register_root_region(const void* begin, std::size_t size);
[[gnu::weak]] void __lsan_unregister_root_region(const void* begin, std::size_t size);
}

namespace stp::managed {

using client::fail;

void* map_pages_of_object(std::size_t size) {
  auto* const pages =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  // A program may end while a domain is open. What the domain owns is no leak then.
  if (__lsan_register_root_region != nullptr) __lsan_register_root_region(pages, size);
  return pages;
}

void unmap_pages_of_object(void* pages, std::size_t size) {
  if (__lsan_unregister_root_region != nullptr) __lsan_unregister_root_region(pages, size);
  ::munmap(pages, size);
}

int Domain::open(const stm_domain_attr_t& attr, std::shared_ptr<Domain>& out) {
  std::shared_ptr<Backend> backend;
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint32_t>::max();
  const client::ShardChoice shard{.number =
                                      static_cast<std::uint32_t>(std::min(attr.shard, kLast))};
  const auto error = attr.link != nullptr ? client::use_link(attr.link, backend, shard)
                                          : client::use_link(backend, shard);
  if (error != 0) return error;
  auto domain = std::allocate_shared<Domain>(PageAllocator<Domain>(), std::move(backend), attr);
  if (const auto failed = domain->open_first_endpoint(); failed != 0) {
    domain->close();
    return failed;
  }
  domain->background_.start([raw = domain.get()] { return raw->background_turn(); });
  out = std::move(domain);
  return 0;
}

namespace {

// Not 0, and not what belongs to no domain.
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{UserChannel::kSomebody};
  std::uint32_t number = 0;
  while ((number = last.fetch_add(1, std::memory_order_relaxed) + 1) <= UserChannel::kSomebody) {
  }
  return number;
}

}  // namespace

Domain::Domain(std::shared_ptr<Backend> backend, const stm_domain_attr_t& attr)
    : backend_(std::move(backend)), number_(next_number()), attr_(attr) {}

Domain::~Domain() = default;

// ---- endpoints of level 0 ----

int Domain::open_first_endpoint() {
  const Lock control(control_mutex_);
  if (const auto error = open_endpoint(first_endpoint_); error != 0) return error;
  return staging_.grow(shared_from_this());
}

int Domain::open_endpoint(EndpointId& out) {
  released_.clear();                    // none of it is bound to the new endpoint
  constexpr unsigned kLongestStu = 16;  // the link and the buffer size limit it further
  // Requests that may wait for the Node. The Node takes them in each turn, so a larger ring would
  // only occupy more cache.
  constexpr std::uint32_t kRequests = 64;
  ask::OpenEndpoint request{.config = ipc::to_wire(EndpointConfig{})};
  auto& config = request.config;
  config.bufsize = attr_.buffer_log2;
  config.max_stu = kLongestStu;
  config.rx_bufx_count = config.tx_bufx_count = BufxSpace::kEntries;
  config.slots = attr_.slots;
  config.credits = kRequests;
  config.checksum = attr_.checksum;
  config.keep_alive = config.recover = 1;
  config.connect_patience = ipc::kLongestPatience;  // each connection has its own timeout
  ask::OpenEndpoint::Reply reply{};
  if (const auto error = backend_->call(request, reply); error != 0) return error;
  out = reply.endpoint;
  for (const auto& memory : memories_)
    if (const auto error = memory->bind_to(out); error != 0) {
      close_endpoint(out);
      return error;
    }
  endpoints_.push_back(out);
  return 0;
}

int Domain::add_memory(const std::shared_ptr<Memory>& memory) {
  if (backend_->error() == 0 && released_.restore(*memory)) {
    memories_.insert(memory);
    return 0;
  }
  auto error = memory->bind();
  // What the program has released takes nothing from what it uses.
  const bool scarce = error != 0 && error != -EINVAL && error != -EFAULT;
  if (scarce && released_.clear()) error = memory->bind();
  if (error == 0) memories_.insert(memory);
  return error;
}

void Domain::remove_memory(const std::shared_ptr<Memory>& memory) {
  memories_.erase(memory);
  if (closed() || backend_->error() != 0) return memory->unbind();
  released_.keep(memory);
}

int Domain::take_endpoint(EndpointId& out) {
  if (idle_endpoints_.empty()) return open_endpoint(out);
  out = idle_endpoints_.back();
  idle_endpoints_.pop_back();
  return 0;
}

int Domain::provide_staging() {
  const Lock control(control_mutex_);
  {
    const Lock guard(mutex_);
    look_for_connections_ = true;
    if (closed()) return -ECANCELED;
  }
  const auto error = staging_.grow(shared_from_this());
  const Lock guard(mutex_);
  places_freed_ = true;  // who waits for memory looks again
  return error;
}

void Domain::close_endpoint(EndpointId endpoint) {
  released_.clear();
  std::erase(endpoints_, endpoint);
  for (const auto& memory : memories_) memory->unbind_from(endpoint);
  backend_->call(ask::CloseEndpoint{.endpoint = endpoint});
}

int Domain::alloc_mx(RegionId region, std::uint8_t permissions, std::uint16_t& out) {
  const ask::AllocMx request{
      .region = region, .vc = kNoneId, .permissions = permissions, .reserved = 0};
  ask::AllocMx::Reply reply{};
  if (const auto error = backend_->call(request, reply); error != 0) return error;
  out = static_cast<std::uint16_t>(reply.mx);
  return 0;
}

void Domain::free_mx(EndpointId endpoint, std::uint16_t mx) {
  backend_->call(ask::FreeMx{.endpoint = endpoint, .mx = mx, .reserved = 0});
}

// ---- its objects ----

void Domain::activate(std::shared_ptr<Connection> connection) {
  auto& entry = connection->entry();
  agenda_.add(entry, *connection, connection->channel_number());
  entry.place = static_cast<std::uint32_t>(connections_.size());
  connections_.push_back(std::move(connection));
  count_connections();
}

void Domain::readdress(Connection& connection) {
  agenda_.take_channel(connection.entry(), connection.channel_number());
}

void Domain::deactivate(const Listener& listener) {
  std::erase_if(listeners_, [&](const auto& l) { return l.get() == &listener; });
}

void Domain::add_access(std::uint32_t key, std::shared_ptr<Access> access) {
  accesses_[key] = std::move(access);
}

std::shared_ptr<Access> Domain::find_access(std::uint32_t key) const {
  const auto found = accesses_.find(key);
  return found == accesses_.end() ? nullptr : found->second;
}

std::uint32_t Domain::new_key() {
  for (;;) {
    const auto key = port::system_random().next();
    if (key > kEagerKey && !accesses_.contains(key)) return key;
  }
}

void Domain::forget(Handle child) {
  children_.erase(child);
  if (child == known_memory_.first) known_memory_ = {};
}

Memory* Domain::look_up_memory(Handle handle) {
  const auto found = client::find<Memory>(handle);
  if (!found || found->domain().get() != this) return nullptr;
  known_memory_ = {handle, &*found};
  return known_memory_.second;
}

void Domain::wake_waiters() {
  client::wake_all(events_word());
  backend_->rouse();
}

// ---- the end ----

void Domain::close() {
  if (closed_.exchange(true)) return;
  background_.stop();
  wake_waiters();
  const Lock control(control_mutex_);
  retire_children();
  end_connections();
  std::set<std::shared_ptr<Memory>> memories;
  memories.swap(memories_);
  for (const auto& memory : memories) memory->unbind();
  staging_.unbind();
  for (const auto endpoints = endpoints_; const auto endpoint : endpoints) close_endpoint(endpoint);
}

void Domain::retire_children() {
  std::map<Handle, client::Kind> children;
  {
    const Lock guard(mutex_);
    children.swap(children_);
  }
  auto& table = client::HandleTable::instance();
  for (const auto& [handle, kind] : children) {
    const auto pin = table.retire(handle, kind);
    if (!pin || kind != Queue::kKind) continue;
    const Lock guard(mutex_);
    static_cast<Queue*>(pin.object().get())->destroy();
  }
  wake_waiters();
}

void Domain::end_connections() {
  const Lock guard(mutex_);
  link_watch_.end();
  listeners_.clear();
  accesses_.clear();
  for (const auto& connection : connections_) {
    connection->abandon();
    connection->forget_operations();
    agenda_.remove(connection->entry());
  }
  unsent_.clear();
  connections_.clear();
  count_connections();
  known_memory_ = {};
}

namespace {

// In static storage, so that they are on no page that a program can register.
constinit Mutex gate{LockRank::kGate};
constinit MappingGateMember* first STP_GUARDED_BY(gate) = nullptr;

}  // namespace

MappingGateMember::MappingGateMember(Mutex& domain) : domain_(domain) {
  shut_at_forks();
  const Lock guard(gate);
  next_ = first;
  first = this;
}

MappingGateMember::~MappingGateMember() {
  const Lock guard(gate);
  auto** place = &first;
  while (*place != this) {
    STP_ASSERT(*place != nullptr, "a member is in the list");
    place = &(*place)->next_;
  }
  *place = next_;
}

// pthread_atfork() runs prepare handlers in reverse order of registration. So SharedPages registers
// its handler first, and this one runs before it: the gate is shut before pages are replaced.
void MappingGateMember::shut_at_forks() {
  static const bool once = [] {
    client::SharedPages::instance();
    return ::pthread_atfork(MappingGateShut::lock, MappingGateShut::unlock,
                            MappingGateShut::unlock) == 0;
  }();
  static_cast<void>(once);
}

void MappingGateShut::lock() {
  gate.lock();
  for (auto* member = first; member != nullptr; member = member->next_) member->domain_.lock();
}

void MappingGateShut::unlock() {
  for (auto* member = first; member != nullptr; member = member->next_) member->domain_.unlock();
  gate.unlock();
}

}  // namespace stp::managed
