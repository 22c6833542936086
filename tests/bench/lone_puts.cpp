// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/lone_puts.h"

#include <array>
#include <stdexcept>
#include <string>

namespace stp::bench {
namespace {

constexpr std::size_t kLoneBytes = 4'096, kLonePut = 8;
constexpr std::size_t kLoneEvents = 8'192;  // of a queue

void expect(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + st_strerror(result));
}

}  // namespace

LonePuts::Side::Side() : bytes(kLoneBytes) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = "loop";
  expect(stm_domain_open(&attr, &domain), "stm_domain_open");
  expect(stm_queue_create(domain, kLoneEvents, &queue), "stm_queue_create");
  expect(stm_memory_register(domain, bytes.data(), bytes.size(), STM_REMOTE_WRITE, &memory),
         "stm_memory_register");
}

unsigned LonePuts::Side::take() {
  std::array<stm_event_t, 16> events;
  const auto count = stm_queue_poll(queue, events.data(), static_cast<int>(events.size()));
  expect(count, "stm_queue_poll");
  unsigned puts = 0;
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    expect(event.status, "an operation");
    if (event.kind == STM_REQUEST)
      expect(stm_accept(event.connection, accept, nullptr, 0), "stm_accept");
    if (event.kind == STM_CONNECTED) ++connected;
    if (event.kind == STM_PUT) ++puts;
  }
  return puts;
}

LonePuts::LonePuts(std::size_t connections) : connections_(connections) {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = b_.queue;
  b_.accept = &attr;
  auto mine = attr;
  mine.events = a_.queue;
  stm_listener_t listener = nullptr;
  expect(stm_listen(b_.domain, ":3000", b_.queue, 0, 0, &listener), "stm_listen");
  for (auto& each : connections_) {
    expect(stm_connection_create(a_.domain, &mine, &each), "stm_connection_create");
    expect(stm_connect(each, ":3000", -1, nullptr, 0), "stm_connect");
    const auto before = b_.connected;
    while (b_.connected == before) a_.take(), b_.take();
  }
  while (a_.connected < connections || b_.connected < connections) a_.take(), b_.take();
  stm_region_t region = nullptr;
  expect(stm_region_open(b_.memory, b_.bytes.data(), kLoneBytes, STM_REMOTE_WRITE, nullptr, 0,
                         &region, &remote_),
         "stm_region_open");
}

LonePuts::~LonePuts() {
  stm_domain_close(a_.domain);
  stm_domain_close(b_.domain);
}

void LonePuts::round() {
  for (auto* const connection : connections_) {
    expect(stm_put(connection, 0, 0, a_.memory, a_.bytes.data(), kLonePut, remote_.key, 0),
           "stm_put");
    while (a_.take() == 0) b_.take();
  }
}

}  // namespace stp::bench
