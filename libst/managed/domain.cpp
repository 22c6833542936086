// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/domain.h"

#include <algorithm>
#include <utility>

#include "dpdk_port/port.h"

#include "libst/client/error.h"
#include "libst/client/links.h"
#include "libst/client/options.h"
#include "libst/client/wait.h"
#include "libst/managed/access.h"
#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "libst/managed/mapping_gate.h"
#include "libst/managed/pool.h"
#include "libst/managed/queue.h"
#include "libst/service/wire_config.h"

namespace stp::managed {

using client::fail;
using client::Reply;
using client::request_for;
using client::RequestKind;

namespace {

// So many posts leave together at most, and none stays longer than this if the program does nothing
// more: then the thread sends it.
constexpr unsigned kBurst = 32;
constexpr Time kLongestBurst = 200 * kMicrosecond;

}  // namespace

int Domain::open(const stm_domain_attr_t& attr, std::shared_ptr<Domain>& out) {
  std::shared_ptr<Backend> backend;
  auto const error =
      attr.link != nullptr ? client::use_link(attr.link, backend) : client::use_link(backend);
  if (error != 0) return error;
  auto domain = std::allocate_shared<Domain>(PageAllocator<Domain>(), std::move(backend), attr);
  if (auto const failed = domain->open_first_endpoint(); failed != 0) {
    domain->close();
    return failed;
  }
  domain->thread_ = std::thread([raw = domain.get()] { raw->run(); });
  out = std::move(domain);
  return 0;
}

Domain::Domain(std::shared_ptr<Backend> backend, const stm_domain_attr_t& attr)
    : backend_(std::move(backend)), attr_(attr) {}

Domain::~Domain() = default;

// ---- endpoints of level 0 ----

int Domain::open_first_endpoint() {
  std::lock_guard const control(control_mutex_);
  if (auto const error = open_endpoint(first_endpoint_); error != 0) return error;
  return staging_.grow(shared_from_this());
}

int Domain::open_endpoint(EndpointId& out) {
  constexpr unsigned kLongestStu = 16;  // as long as link and buffers allow
  auto request = request_for(RequestKind::kOpenEndpoint);
  auto& config = request.config = service::to_wire(EndpointConfig{});
  config.bufsize = attr_.buffer_log2;
  config.max_stu = kLongestStu;
  config.rx_bufx_count = config.tx_bufx_count = BufxSpace::kEntries;
  config.slots = config.credits = attr_.slots;
  config.checksum = attr_.checksum;
  config.keep_alive = config.recover = 1;
  Reply reply{};
  if (auto const error = backend_->exchange(request, reply); error != 0) return error;
  out = reply.endpoint;
  for (auto const& memory : memories_)
    if (auto const error = memory->bind_to(out); error != 0) {
      close_endpoint(out);
      return error;
    }
  endpoints_.push_back(out);
  return 0;
}

int Domain::take_endpoint(EndpointId& out) {
  if (idle_endpoints_.empty()) return open_endpoint(out);
  out = idle_endpoints_.back();
  idle_endpoints_.pop_back();
  return 0;
}

int Domain::provide_staging() {
  std::lock_guard const control(control_mutex_);
  {
    std::lock_guard const guard(mutex_);
    needs_staging_ = false;
    look_for_connections_ = true;
    if (staging_.has_free()) return 0;
  }
  return closed() ? -ECANCELED : staging_.grow(shared_from_this());
}

void Domain::close_endpoint(EndpointId endpoint) {
  std::erase(endpoints_, endpoint);
  for (auto const& memory : memories_) memory->unbind_from(endpoint);
  auto request = request_for(RequestKind::kCloseEndpoint);
  request.endpoint = endpoint;
  Reply reply{};
  backend_->exchange(request, reply);
}

int Domain::alloc_mx(RegionId region, std::uint8_t permissions, std::uint16_t& out) {
  auto request = request_for(RequestKind::kAllocMx);
  request.region = region;
  request.permissions = permissions;
  Reply reply{};
  if (auto const error = backend_->exchange(request, reply); error != 0) return error;
  out = static_cast<std::uint16_t>(reply.mx);
  return 0;
}

void Domain::free_mx(EndpointId endpoint, std::uint16_t mx) {
  auto request = request_for(RequestKind::kFreeMx);
  request.endpoint = endpoint;
  request.mx = mx;
  Reply reply{};
  backend_->exchange(request, reply);
}

// ---- who lives on it ----

void Domain::activate(std::shared_ptr<Connection> connection) {
  auto& entry = connection->entry();
  agenda_.add(entry, *connection, connection->channel_number());
  entry.place = connections_.size();
  connections_.push_back(std::move(connection));
}

void Domain::deactivate(const Listener& listener) {
  std::erase_if(listeners_, [&](auto const& l) { return l.get() == &listener; });
}

void Domain::add_access(std::uint32_t key, std::shared_ptr<Access> access) {
  accesses_[key] = std::move(access);
}

std::shared_ptr<Access> Domain::find_access(std::uint32_t key) const {
  auto const found = accesses_.find(key);
  return found == accesses_.end() ? nullptr : found->second;
}

std::uint32_t Domain::new_key() {
  for (;;) {
    auto const key = port::system_random().next();
    if (key > kEagerKey && !accesses_.contains(key)) return key;
  }
}

void Domain::forget(Handle child) {
  children_.erase(child);
  if (child == known_memory_.first) known_memory_ = {};
}

Memory* Domain::find_memory(Handle handle) {
  if (handle == known_memory_.first) return known_memory_.second;
  auto const found = client::find<Memory>(handle);
  if (!found || found->domain().get() != this) return nullptr;
  known_memory_ = {handle, &*found};
  return known_memory_.second;
}

// ---- progress ----

// What is not of any one connection.
void Domain::look_around() {
  auto const lost = backend_->error();
  if (lost != 0 && !link_lost_) {
    link_lost_ = true;
    for (auto const& connection : connections_) connection->lose(lost);
  }
  auto const accepts = backend_->page().accepts.load(std::memory_order_acquire);
  if (accepts == accepts_seen_ && !look_for_connections_) return;
  accepts_seen_ = accepts;
  look_for_connections_ = false;
  for (auto const& listener : listeners_) listener->accept();
}

void Domain::progress() {
  time_ = client::now();
  posts_ = 0;
  in_turn_ = true;
  look_around();
  do {
    if (std::exchange(places_freed_, false)) agenda_.call_parked();
    take_turn(time_);
  } while (places_freed_ && agenda_.has_parked());
  in_turn_ = false;
  send_all();
}

void Domain::take_turn(Time now) {
  agenda_.gather(backend_->page().news, now);
  look_at_states();
  auto const& turn = agenda_.turn();
  for (auto* const entry : turn) entry->connection->advance(now);
  for (auto* const entry : turn) entry->connection->conclude(now);
  end_turn();
}

// What came before the end of one connection on others is told before it, and it may have come
// after the news were gathered.
void Domain::look_at_states() {
  bool ends = false;
  for (auto* const entry : agenda_.turn()) ends |= entry->connection->look();
  if (!ends) return;
  for (auto const& connection : connections_)
    if (connection->has_headers()) agenda_.visit(connection->entry());
}

void Domain::end_turn() {
  for (auto* const entry : agenda_.turn()) {
    auto const& connection = *entry->connection;
    if (connection.gone()) {
      gone_.push_back(entry);
      continue;
    }
    agenda_.expect(*entry, connection.next_deadline());
    if (connection.wants_another_look()) agenda_.again(*entry);
    if (connection.waits_for_this_side()) agenda_.park(*entry);
  }
  agenda_.end_turn();
  for (auto* const entry : gone_) drop(*entry);
  gone_.clear();
}

void Domain::drop(Agenda::Entry& entry) {
  if (entry.unsent) std::erase(unsent_, entry.connection);
  agenda_.remove(entry);
  auto const place = entry.place;
  auto const connection = std::exchange(connections_[place], std::move(connections_.back()));
  connections_.pop_back();
  if (place < connections_.size()) connections_[place]->entry().place = place;
}

void Domain::receive_posted() {
  if (!agenda_.has_parked()) return;
  places_freed_ = true;
  progress();
}

void Domain::visit(Connection& connection) {
  if (agenda_.knows(connection.entry())) agenda_.again(connection.entry());
}

void Domain::send_soon(Connection& connection) {
  auto& entry = connection.entry();
  if (!std::exchange(entry.unsent, true)) unsent_.push_back(&connection);
  if (in_turn_) return;
  // Whoever sleeps in stm_queue_wait() will not look before there is an answer.
  bool const alone = posts_++ == 0 && !in_bulk_;
  if (alone || posts_ % kBurst == 0 || waiters_ != 0) return send_all();
  has_unsent_.store(true, std::memory_order_relaxed);
  look_before(time_ + kLongestBurst);
}

bool Domain::pump_all() {
  bool any = false;
  for (auto* const connection : unsent_) {
    connection->entry().unsent = false;
    any |= connection->pump(time_);
    if (connection->wants_another_look()) visit(*connection);
  }
  unsent_.clear();
  has_unsent_.store(false, std::memory_order_relaxed);
  return any;
}

void Domain::send_all() {
  if (!unsent_.empty() && pump_all()) backend_->rung();
}

Time Domain::time() {
  if (posts_ % kBurst == 0) time_ = client::now();
  return time_;
}

void Domain::look_before(Connection& connection) {
  if (!agenda_.knows(connection.entry())) return;
  auto const deadline = connection.next_deadline();
  agenda_.expect(connection.entry(), deadline);
  look_before(deadline);
}

void Domain::look_before(Time deadline) {
  if (deadline >= thread_looks_.load(std::memory_order_relaxed)) return;
  thread_looks_.store(deadline, std::memory_order_relaxed);
  wake_waiters();
}

void Domain::wake_waiters() {
  client::wake_all(events_word());
}

// ---- the end ----

void Domain::close() {
  if (closed_.exchange(true)) return;
  stopping_ = true;
  take_over();
  wake_waiters();
  if (thread_.joinable()) thread_.join();
  std::lock_guard const control(control_mutex_);
  retire_children();
  end_connections();
  std::set<std::shared_ptr<Memory>> memories;
  memories.swap(memories_);
  for (auto const& memory : memories) memory->unbind();
  staging_.unbind();
  for (auto const endpoints = endpoints_; auto const endpoint : endpoints) close_endpoint(endpoint);
}

void Domain::retire_children() {
  std::map<Handle, client::Kind> children;
  {
    std::lock_guard const guard(mutex_);
    children.swap(children_);
  }
  auto& table = client::HandleTable::instance();
  for (auto const& [handle, kind] : children) {
    auto const pin = table.retire(handle, kind);
    if (!pin || kind != Queue::kKind) continue;
    std::lock_guard const guard(mutex_);
    static_cast<Queue*>(pin.object().get())->destroy();
  }
  wake_waiters();
}

void Domain::end_connections() {
  std::lock_guard const guard(mutex_);
  listeners_.clear();
  accesses_.clear();
  for (auto const& connection : connections_) {
    connection->abandon();
    connection->forget_operations();
    agenda_.remove(connection->entry());
  }
  unsent_.clear();
  connections_.clear();
  known_memory_ = {};
}

}  // namespace stp::managed
