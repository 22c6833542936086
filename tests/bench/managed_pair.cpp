// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/managed_pair.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace stp::bench {
namespace {

void check(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + st_strerror(result));
}

constexpr unsigned kAccess = STM_REMOTE_WRITE;
constexpr std::size_t kCapacity = 256;

}  // namespace

ManagedPair::Side::Side(const std::string& link, std::uint32_t shard) : bytes(2 * kMost) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = link.c_str();
  attr.shard = shard;
  check(stm_domain_open(&attr, &domain), "stm_domain_open");
  check(stm_queue_create(domain, kCapacity, &queue), "stm_queue_create");
  check(stm_memory_register(domain, bytes.data(), bytes.size(), kAccess, &memory),
        "stm_memory_register");
}

// Ignores other events, mostly completions of sends.
bool ManagedPair::Side::take(unsigned kind) {
  stm_event_t events[16];
  const auto count = stm_queue_poll(queue, events, 16);
  check(count, "stm_queue_poll");
  for (int i = 0; i < count; ++i) {
    check(events[i].status, "an operation");
    seen.push_back(events[i]);
  }
  const auto found =
      std::find_if(seen.begin(), seen.end(), [=](const auto& event) { return event.kind == kind; });
  if (found == seen.end()) return false;
  if (kind == STM_REQUEST) connection = found->connection;
  seen.erase(found);
  return true;
}

void ManagedPair::Side::await(unsigned kind, Side& other) {
  while (!take(kind)) other.take(0);
}

ManagedPair::ManagedPair(const PairPlaces& places)
    : a_(places.link_a, places.shard_a), b_(places.link_b, places.shard_b) {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = b_.queue;
  stm_listener_t listener = nullptr;
  check(stm_listen(b_.domain, places.port.c_str(), b_.queue, 0, 0, &listener), "stm_listen");
  auto mine = attr;
  mine.events = a_.queue;
  check(stm_connection_create(a_.domain, &mine, &a_.connection), "stm_connection_create");
  check(stm_connect(a_.connection, (places.host + places.port).c_str(), -1, nullptr, 0),
        "stm_connect");
  b_.await(STM_REQUEST, a_);
  check(stm_accept(b_.connection, &attr, nullptr, 0), "stm_accept");
  a_.await(STM_CONNECTED, b_);
  b_.await(STM_CONNECTED, a_);
  stm_region_t region = nullptr;
  check(stm_region_open(b_.memory, b_.bytes.data() + kMost, kMost, kAccess, nullptr, 0, &region,
                        &remote_),
        "stm_region_open");
  stm_connection_info_t info{};
  info.size = sizeof info;
  for (auto* const side : {&a_, &b_})
    for (info.eager = 0; info.eager == 0; a_.take(0), b_.take(0))
      check(stm_connection_query(side->connection, &info), "stm_connection_query");
}

ManagedPair::~ManagedPair() {
  stm_domain_close(a_.domain);
  stm_domain_close(b_.domain);
}

void ManagedPair::message(Side& from, Side& to, std::size_t length) {
  check(stm_receive(to.connection, 0, to.memory, to.bytes.data() + kMost, kMost), "stm_receive");
  check(stm_send(from.connection, 0, STM_QUIET, 0, from.memory, from.bytes.data(), length),
        "stm_send");
  to.await(STM_RECEIVE, from);
}

void ManagedPair::round_trip(std::size_t length) {
  message(a_, b_, length);
  message(b_, a_, length);
}

void ManagedPair::put(std::size_t length) {
  check(stm_put(a_.connection, 0, 0, a_.memory, a_.bytes.data(), length, remote_.key, 0),
        "stm_put");
  a_.await(STM_PUT, b_);
}

std::uint64_t ManagedPair::puts_until(const std::atomic<bool>& stop, std::uint32_t window,
                                      std::size_t length, ManagedPair* served) {
  std::vector<stm_event_t> events(window);
  std::uint64_t posted = 0, done = 0;
  while (!stop) {
    for (; posted - done < window; ++posted)
      check(stm_put(a_.connection, 0, 0, a_.memory, a_.bytes.data(), length, remote_.key, 0),
            "stm_put");
    const auto told = stm_queue_poll(a_.queue, events.data(), static_cast<int>(window));
    check(told, "stm_queue_poll");
    done += static_cast<std::uint64_t>(told);
    if (served != nullptr) served->b_.take(0);
  }
  return done;
}

void ManagedPair::serve_until(const std::atomic<bool>& stop) {
  while (!stop) b_.take(0);
}

void ManagedPair::puts(std::uint32_t count, std::size_t length, bool listed, std::uint32_t window) {
  std::vector<stm_event_t> events(window);
  std::vector<stm_operation_t> list(window);
  for (auto& put : list) {
    put.kind = STM_PUT;
    put.memory = a_.memory;
    put.ptr = a_.bytes.data();
    put.length = length;
    put.key = remote_.key;
  }
  for (std::uint32_t posted = 0, done = 0; done < count;) {
    if (listed && posted < count) {
      const auto room = std::min(count - posted, window - (posted - done));
      check(stm_post_list(a_.connection, list.data(), room), "stm_post_list");
      posted += room;
    }
    for (; posted < count && posted - done < window; ++posted)
      check(stm_put(a_.connection, 0, 0, a_.memory, a_.bytes.data(), length, remote_.key, 0),
            "stm_put");
    const auto told = stm_queue_poll(a_.queue, events.data(), static_cast<int>(window));
    check(told, "stm_queue_poll");
    done += static_cast<std::uint32_t>(told);
    b_.take(0);
  }
}

void ManagedPair::idle(std::uint32_t count) {
  stm_event_t event;
  for (std::uint32_t i = 0; i < count; ++i)
    check(stm_queue_poll(a_.queue, &event, 1), "stm_queue_poll");
}

}  // namespace stp::bench
