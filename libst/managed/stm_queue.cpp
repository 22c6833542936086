// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: queues and pools.
#include <algorithm>
#include <span>

#include "libst/client/links.h"
#include "libst/managed/api.h"

using stp::client::Handle;
using stp::managed::Connection;
using stp::managed::Domain;
using stp::managed::Pool;
using stp::managed::PostedReceive;
using stp::managed::Queue;
using namespace stp::managed::api;

namespace {

constexpr std::size_t kMostReceives = std::size_t{1} << 20;

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
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    if (queue == nullptr) return missing("queue");
    if (capacity == 0 || capacity > Queue::kMaxCapacity)
      return fail(-EINVAL, "capacity is not in 1..1048576");
    return publish(*found, std::make_shared<Queue>(found.share(), capacity), queue);
  });
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
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    if (pool == nullptr) return missing("pool");
    if (capacity == 0 || capacity > kMostReceives)
      return fail(-EINVAL, "capacity is not in 1..1048576");
    return publish(*found, std::make_shared<Pool>(found.share(), capacity), pool);
  });
}

int stm_pool_resize(stm_pool_t pool, size_t capacity) {
  return guarded([&] {
    const auto found = find<Pool>(pool);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    if (capacity > kMostReceives || capacity == 0 || capacity < found->receives.size())
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
