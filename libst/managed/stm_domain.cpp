// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: domains, with their memory, regions, link, queues and pools.
#include <algorithm>
#include <span>

#include "libst/client/links.h"
#include "libst/managed/api.h"
#include "libst/managed/memory.h"
#include "stp/channel/layout.h"
#include "stp/wire/big_endian.h"

using stp::MutableBytes;
using stp::client::Handle;
using stp::managed::Access;
using stp::managed::Connection;
using stp::managed::Domain;
using stp::managed::Memory;
using stp::managed::MemoryUse;
using stp::managed::Pool;
using stp::managed::PostedReceive;
using stp::managed::Queue;
using namespace stp::managed::api;

namespace {

constexpr unsigned kRemote = STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC;
constexpr unsigned kAllAccess = STM_LOCAL_READ | STM_LOCAL_WRITE | kRemote;

constexpr std::uint32_t kSlots = 192;
// RSRs have only the places of the ring beyond its Slots. A program that is not scheduled for some
// microseconds finds one for each Block that it has sent. An RSR that is lost makes its Write wait
// for a timeout: with 16 places, transfers at 1 % loss took 1.5 times as long.
static_assert(stp::ChannelGeometry{.slots = kSlots}.rx_capacity() - kSlots >= 64);

int complete(stm_domain_attr_t& attr) {
  constexpr std::uint32_t kLargestBuffer = 24, kLeastSlots = 64, kMostSlots = 65'535;
  if (attr.buffer_log2 == 0) attr.buffer_log2 = stp::managed::kPageLog2;
  if (attr.slots == 0) attr.slots = kSlots;
  if (attr.buffer_log2 < stp::managed::kPageLog2 || attr.buffer_log2 > kLargestBuffer)
    return fail(-EINVAL, "buffer_log2 is not in 12..24");
  if (attr.slots < kLeastSlots || attr.slots > kMostSlots)
    return fail(-EINVAL, "slots is not in 64..65535");
  if (attr.checksum > 1) return fail(-EINVAL, "checksum must be 0 or 1");
  return 0;
}

int check_region(const Memory& memory, void* ptr, std::size_t length, unsigned access) {
  if (length == 0 || !memory.contains(ptr, length))
    return fail(-EINVAL, "the region is not inside the memory");
  if (access == 0 || (access & ~kRemote) != 0)
    return fail(-EINVAL, "access must be made of STM_REMOTE_READ, _WRITE and _ATOMIC");
  if ((access & ~memory.access()) != 0)
    return fail(-EACCES, "the memory was not registered for this access");
  return 0;
}

int open_region(stm_memory_t memory, const Access::Terms& terms, stm_region_t* region,
                stm_remote_t* remote) {
  const auto from = find<Memory>(memory);
  if (!from) return -EBADF;
  if (region == nullptr) return missing("region");
  if (remote == nullptr) return missing("remote");
  auto* const ptr = terms.bytes.data();
  const auto length = terms.bytes.size();
  if (const auto error = check_region(*from, ptr, length, terms.access); error != 0) return error;
  if (terms.address > UINT64_MAX - (length - 1))
    return fail(-EINVAL, "address is so high that the region would have no addresses at its end");
  auto& domain = *from->domain();
  std::shared_ptr<Access> made;
  {
    const stp::Lock guard(domain.mutex());
    made = std::make_shared<Access>(from.share(), terms, domain.new_key());
    domain.add_access(made->key(), made);
    ++from->uses;
    ++from->regions;
  }
  *remote = {terms.address, length, made->key(), terms.access};
  const auto error = publish(domain, made, region);
  if (error != 0) {
    const stp::Lock guard(domain.mutex());
    made->revoke();
  }
  return error;
}

// Quiet operations end without an event, and lazy ones late. If only such operations use the
// memory, this asks for their confirmation and waits for it, up to kLongest.
void confirm_quiet_uses(Domain& domain, const Memory& memory, stp::Lock& guard)
    STP_REQUIRES(domain.mutex()) {
  constexpr stp::Time kLongest = 100 * stp::kMillisecond, kInterval = 50 * stp::kMicrosecond;
  const auto until = domain.now() + kLongest;
  while (memory.uses != 0 && domain.now() < until) {
    unsigned quiet = 0;
    for (const auto& connection : domain.connections()) quiet += connection->quiet_uses(memory);
    if (quiet != memory.uses) return;
    for (const auto& connection : domain.connections()) connection->confirm_quiet_puts();
    guard.without([&] { stp::client::pause(domain.backend(), kInterval); });
    domain.progress();
  }
}

}  // namespace

int stm_domain_open(const stm_domain_attr_t* given, stm_domain_t* domain) {
  return guarded([&] {
    if (domain == nullptr) return missing("domain");
    auto& table = stp::client::HandleTable::instance();
    if (table.inherited())
      return fail(-EBADF,
                  "libst does not work in a child of fork() whose parent has used it: fork first, "
                  "or call exec()");
    stm_domain_attr_t attr;
    if (const auto error = read_attributes(given, attr); error != 0) return error;
    if (const auto error = complete(attr); error != 0) return error;
    std::shared_ptr<Domain> opened;
    if (const auto error = Domain::open(attr, opened); error != 0) return error;
    const auto handle = table.add(Domain::kKind, opened);
    if (handle == 0) {
      opened->close();
      return fail(-EMFILE, "too many handles");
    }
    *domain = reinterpret_cast<stm_domain_t>(handle);
    return 0;
  });
}

int stm_domain_close(stm_domain_t domain) {
  return guarded([&] {
    const auto closing = retire<Domain>(domain);
    if (!closing) return -EBADF;
    closing->close();
    return 0;
  });
}

int stm_domain_query(stm_domain_t domain, stm_domain_info_t* info) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    stm_domain_info_t known{};
    known.mac = found->backend().mac().to_u64();
    known.ipv4 = found->backend().ipv4();
    known.mtu = found->backend().mtu();
    known.cache = found->released().state();
    known.udp_port = found->backend().udp_port();
    known.peer_udp_port = found->backend().peer_udp_port();
    return write_info(known, info);
  });
}

// ---- memory ----

int stm_memory_register(stm_domain_t domain, void* ptr, size_t length, unsigned access,
                        stm_memory_t* memory) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    if (ptr == nullptr) return missing("ptr");
    if (memory == nullptr) return missing("memory");
    if (length == 0) return fail(-EINVAL, "length must not be 0");
    if ((access & ~kAllAccess) != 0) return fail(-EINVAL, "access has unknown bits");
    const auto made = std::make_shared<Memory>(
        found.share(), MutableBytes{static_cast<std::byte*>(ptr), length}, access);
    const stp::Lock control(found->control_mutex());
    if (const auto error = found->add_memory(made); error != 0) return error;
    return publish(*found, made, memory);
  });
}

int stm_memory_release(stm_memory_t memory) {
  return guarded([&] {
    const auto found = find<Memory>(memory);
    if (!found) return -EBADF;
    const auto domain = found->domain();
    const stp::Lock control(domain->control_mutex());
    {
      stp::Lock guard(domain->mutex());
      confirm_quiet_uses(*domain, *found, guard);
      if (found->uses != 0) return fail(-EBUSY, "operations or regions use the memory");
      const auto retired = retire<Memory>(memory);
      if (!retired) return -EBADF;
      domain->forget(reinterpret_cast<Handle>(memory));
    }
    domain->remove_memory(found.share());
    return 0;
  });
}

int stm_memory_withdraw(stm_memory_t memory) {
  return guarded([&] {
    const auto found = find<Memory>(memory);
    if (!found) return -EBADF;
    const auto domain = found->domain();
    const stp::Lock control(domain->control_mutex());
    stp::Lock guard(domain->mutex());
    if (found->regions != 0) return fail(-EBUSY, "regions use the memory");
    if (!retire<Memory>(memory)) return -EBADF;
    domain->forget(reinterpret_cast<Handle>(memory));
    found->withdrawn = found->uses != 0;
    const auto in_use = [&] {
      domain->mutex().is_held();
      bool any = false;
      for (const auto& connection : std::vector(domain->connections()))
        any |= connection->withdraw(*found);
      return any;
    };
    while (in_use()) {
      constexpr stp::Time kInterval = 100 * stp::kMicrosecond;
      guard.without([&] { stp::client::pause(domain->backend(), kInterval); });
    }
    guard.unlock();
    domain->remove_memory(found.share());
    return 0;
  });
}

// ---- regions ----

int stm_region_open(stm_memory_t memory, void* ptr, size_t length, unsigned access,
                    stm_connection_t connection, uint64_t address, stm_region_t* region,
                    stm_remote_t* remote) {
  return guarded([&] {
    const auto only = find<stp::managed::Connection>(connection);
    if (connection != nullptr && !only) return -EBADF;
    return open_region(memory,
                       {.bytes = {static_cast<std::byte*>(ptr), length},
                        .access = access,
                        .address = address,
                        .only = only ? &*only : nullptr},
                       region, remote);
  });
}

int stm_region_open_group(stm_memory_t memory, void* ptr, size_t length, unsigned access,
                          uint64_t group, uint64_t address, stm_region_t* region,
                          stm_remote_t* remote) {
  return guarded([&] {
    if (group == 0) return fail(-EINVAL, "group must be non-zero");
    return open_region(memory,
                       {.bytes = {static_cast<std::byte*>(ptr), length},
                        .access = access,
                        .address = address,
                        .group = group},
                       region, remote);
  });
}

int stm_region_close(stm_region_t region) {
  return guarded([&] {
    const auto closing = retire<Access>(region);
    if (!closing) return -EBADF;
    auto& domain = *closing->domain();
    const stp::Lock guard(domain.mutex());
    domain.forget(reinterpret_cast<Handle>(region));
    closing->revoke();
    return 0;
  });
}

void stm_remote_encode(const stm_remote_t* remote, void* bytes) {
  auto* const to = static_cast<std::byte*>(bytes);
  stp::wire::store64(to, remote->address);
  stp::wire::store64(to + 8, remote->length);
  stp::wire::store32(to + 16, remote->key);
  stp::wire::store32(to + 20, remote->access);
}

void stm_remote_decode(const void* bytes, stm_remote_t* remote) {
  const auto* const from = static_cast<const std::byte*>(bytes);
  *remote = {.address = stp::wire::load64(from),
             .length = stp::wire::load64(from + 8),
             .key = stp::wire::load32(from + 16),
             .access = stp::wire::load32(from + 20)};
}

// ---- the link ----

int stm_link_query(stm_domain_t domain, stm_link_info_t* info) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    auto& backend = found->backend();
    stp::ask::LinkState::Reply reply{};
    if (const auto error = backend.call(stp::ask::LinkState{}, reply); error != 0) return error;
    stm_link_info_t known{};
    known.state = reply.state;
    known.changes = static_cast<std::uint32_t>(reply.changes);
    known.age = reply.age / stp::kMicrosecond;
    known.mtu = reply.mtu;
    known.megabits = reply.megabits;
    stp::client::trouble_of(backend).copy(known.trouble, sizeof known.trouble - 1);
    return write_info(known, info);
  });
}

int stm_link_watch(stm_domain_t domain, stm_queue_t queue, uint64_t context) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    if (queue == nullptr) {
      const stp::Lock guard(found->mutex());
      found->link_watch().end();
      return 0;
    }
    const auto events = find<Queue>(queue);
    if (!events) return -EBADF;
    if (&events->domain() != &*found) return fail(-EINVAL, "the queue is of another domain");
    const stp::Lock guard(found->mutex());
    if (events->destroyed()) return -EBADF;
    if (!found->link_watch().begin(found->backend(), events.share(), context))
      return fail(-EAGAIN, "the queue has no place for the link's present state");
    return 0;
  });
}

// ---- queues ----

namespace {

// Makes a queue or a pool.
template <typename Object>
int make(stm_domain_t domain, std::size_t capacity, auto* out, const char* name) {
  const auto found = find<Domain>(domain);
  if (!found) return -EBADF;
  if (out == nullptr) return missing(name);
  if (capacity == 0 || capacity > Object::kMaxCapacity)
    return fail(-EINVAL, "capacity is not in 1..1048576");
  return publish(*found, std::make_shared<Object>(found.share(), capacity), out);
}

struct Peer {
  stp::MacAddr mac;
  bool is_up = false;  // the connection with it
};

Peer peer_of(Domain& domain, stm_connection_t connection) {
  const auto found = find<Connection>(connection);
  const stp::Lock guard(domain.mutex());
  if (!found) return {};
  return {found->peer_mac(), found->is_up()};
}

// If an operation timed out, makes st_strerror() name what the link knows of its peer, if there is
// any. The peer may have been the first to give it up, and have cancelled it. If the link itself is
// gone, st_strerror() names that instead of the peer.
[[gnu::noinline]] void explain(Domain& domain, const stm_event_t* events, const stm_event_t* end) {
  const auto lost = [](const stm_event_t& event) { return event.status == -ENOTCONN; };
  if (std::any_of(events, end, lost) && domain.backend().gone() != 0) return;
  const auto ended = [](const stm_event_t& event) {
    return event.status == -ETIMEDOUT || event.status == -ECANCELED;
  };
  const auto* const first = std::find_if(events, end, ended);
  if (first == end) return;
  const auto peer = peer_of(domain, first->connection);
  if (first->status == -ETIMEDOUT)
    stp::client::fail_in_time(domain.backend(), peer.mac);
  else if (peer.is_up)
    stp::client::fail_by_link(domain.backend(), peer.mac, -ECANCELED,
                              "the operation was cancelled by one of the two sides");
}

// Events that the program is given.
[[gnu::noinline]] void look_at(Domain& domain, std::span<const stm_event_t> events) {
  if (domain.has_many()) domain.fetch_ahead_of(events);
  int failed = 0;
  for (const auto& event : events) failed |= event.status;
  if (failed != 0) explain(domain, events.data(), events.data() + events.size());
}
int handed_over(Domain& domain, const stm_event_t* events, int count) {
  if (count > 0) look_at(domain, {events, static_cast<std::size_t>(count)});
  return count;
}

}  // namespace

int stm_queue_create(stm_domain_t domain, size_t capacity, stm_queue_t* queue) {
  return guarded([&] { return make<Queue>(domain, capacity, queue, "queue"); });
}

int stm_queue_resize(stm_queue_t queue, size_t capacity) {
  return guarded([&] {
    const auto found = find<Queue>(queue);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain().mutex());
    if (found->resize(capacity) != 0)
      return fail(-EINVAL,
                  "capacity is not in 1..1048576, or less than what waits and is reserved");
    found->domain().places_freed();
    found->domain().progress();
    return 0;
  });
}

int stm_queue_destroy(stm_queue_t queue) {
  return guarded([&] {
    const auto found = find<Queue>(queue);
    if (!found) return -EBADF;
    auto& domain = found->domain();
    const stp::Lock guard(domain.mutex());
    if (found->used()) return fail(-EBUSY, "connections or listeners use the queue");
    if (!retire<Queue>(queue)) return -EBADF;
    domain.forget(reinterpret_cast<Handle>(queue));
    found->destroy();
    domain.wake_waiters();
    return 0;
  });
}

int stm_queue_poll(stm_queue_t queue, stm_event_t* events, int max) {
  return guarded([&] {
    const auto found = find<Queue>(queue);
    if (!found) return -EBADF;
    if (events == nullptr) return missing("events");
    if (max <= 0) return fail(-EINVAL, "max must be positive");
    auto& domain = found->domain();
    return handed_over(domain, events, domain.poll(*found, events, max));
  });
}

int stm_queue_wait(stm_queue_t queue, int threshold, stm_event_t* events, int max,
                   int64_t timeout) {
  return guarded([&] {
    const auto found = find<Queue>(queue);
    if (!found) return -EBADF;
    if (events == nullptr) return missing("events");
    if (threshold <= 0 || threshold > max) return fail(-EINVAL, "threshold is not in 1..max");
    {
      const stp::Lock guard(found->domain().mutex());
      if (static_cast<std::size_t>(threshold) > found->capacity())
        return fail(-EINVAL, "threshold is beyond the queue's capacity");
    }
    auto& domain = found->domain();
    return handed_over(domain, events,
                       domain.wait(*found, threshold, events, max, deadline_of(timeout)));
  });
}

int stm_queue_fd(stm_queue_t queue) {
  return guarded([&] {
    const auto found = find<Queue>(queue);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain().mutex());
    return found->descriptor();
  });
}

int stm_queue_post(stm_queue_t queue, uint64_t context) {
  return guarded([&] {
    const auto found = find<Queue>(queue);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain().mutex());
    if (!found->reserve(1)) return -EAGAIN;
    stm_event_t event{};
    event.kind = STM_USER;
    event.context = context;
    found->push(event);
    return 0;
  });
}

// ---- pools ----

int stm_pool_create(stm_domain_t domain, size_t capacity, stm_pool_t* pool) {
  return guarded([&] { return make<Pool>(domain, capacity, pool, "pool"); });
}

int stm_pool_resize(stm_pool_t pool, size_t capacity) {
  return guarded([&] {
    const auto found = find<Pool>(pool);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    if (capacity > Pool::kMaxCapacity || capacity == 0 || capacity < found->receives.size())
      return fail(-EINVAL, "capacity is less than what waits in the pool, or more than 1048576");
    found->capacity = capacity;
    return 0;
  });
}

int stm_pool_destroy(stm_pool_t pool, void (*give_back)(void* user, uint64_t context), void* user) {
  return guarded([&] {
    const auto found = find<Pool>(pool);
    if (!found) return -EBADF;
    stp::RingQueue<PostedReceive> left;
    {
      auto& domain = *found->domain();
      const stp::Lock guard(domain.mutex());
      if (found->users != 0) return fail(-EBUSY, "connections use the pool");
      if (!retire<Pool>(pool)) return -EBADF;
      domain.forget(reinterpret_cast<Handle>(pool));
      std::swap(left, found->receives);
      for (auto& receive : left) receive.memory = {};
    }
    if (give_back != nullptr)
      for (const auto& receive : left) give_back(user, receive.context);
    return 0;
  });
}

int stm_pool_post(stm_pool_t pool, uint64_t context, stm_memory_t memory, void* ptr,
                  size_t length) {
  return guarded([&] {
    const auto found = find<Pool>(pool);
    if (!found) return -EBADF;
    return post_receive(*found, context, memory, ptr, length,
                        [&](Domain& domain, PostedReceive&& receive) {
                          domain.mutex().is_held();
                          if (found->receives.size() >= found->capacity) return -EAGAIN;
                          found->receives.push_back(std::move(receive));
                          domain.receive_posted();
                          return 0;
                        });
  });
}

int64_t stm_pool_available(stm_pool_t pool) {
  return guarded([&] {
    const auto found = find<Pool>(pool);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return static_cast<int>(found->receives.size());
  });
}
