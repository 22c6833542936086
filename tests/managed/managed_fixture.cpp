// SPDX-License-Identifier: BSD-3-Clause
#include "tests/managed/managed_fixture.h"

#include <chrono>
#include <thread>

namespace stp::test {
namespace {

constexpr std::int64_t kFixturePatience = 20'000'000;

}  // namespace

Side::Side(std::size_t capacity, const stm_domain_attr_t* attr) {
  auto error = stm_domain_open(attr, &domain);
  if (error == 0) error = stm_queue_create(domain, capacity, &queue);
  EXPECT_EQ(error, 0) << st_strerror(error);
}

void Side::close() {
  if (domain != nullptr) stm_domain_close(domain);
  domain = nullptr;
}

stm_connection_attr_t Side::attr(std::uint64_t context) const {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.context = context;
  attr.events = queue;
  return attr;
}

template <typename Wanted>
stm_event_t Side::find(Wanted wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(kFixturePatience);
  for (;;) {
    for (auto at = seen.begin(); at != seen.end(); ++at) {
      if (!wanted(*at)) continue;
      const auto event = *at;
      seen.erase(at);
      return event;
    }
    stm_event_t events[16];
    const auto count = stm_queue_wait(queue, 1, events, 16, kFixturePatience);
    if (count < 0 && count != -EINTR) break;
    for (int i = 0; i < count; ++i) seen.push_back(events[i]);
    if (std::chrono::steady_clock::now() > end) break;
  }
  ADD_FAILURE() << "the event did not come";
  for (const auto& event : seen)
    ADD_FAILURE() << "instead: kind " << event.kind << " status " << event.status << " context "
                  << event.context;
  stm_event_t none{};
  none.status = -1;
  return none;
}

stm_event_t Side::next(unsigned kind) {
  return find([=](const stm_event_t& event) { return event.kind == kind; });
}

stm_event_t Side::completion(std::uint64_t context) {
  return find(
      [=](const stm_event_t& event) { return event.context == context && event.kind >= STM_SEND; });
}

bool Side::quiet() {
  stm_event_t events[16];
  const auto count = stm_queue_wait(queue, 1, events, 16, 30'000);
  for (int i = 0; i < count; ++i) seen.push_back(events[i]);
  return seen.empty();
}

void Side::await_eager() const {
  stm_connection_info_t info{};
  info.size = sizeof info;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(stm_connection_query(connection, &info), 0);
  } while (info.eager == 0);
}

stm_memory_t Side::memory(void* ptr, std::size_t length, unsigned access) {
  stm_memory_t made = nullptr;
  const auto error = stm_memory_register(domain, ptr, length, access, &made);
  EXPECT_EQ(error, 0) << st_strerror(error);
  return made;
}

void TwoSides::listen() {
  const auto error = stm_listen(server.domain, ":3000", server.queue, 7, 0, &listener);
  ASSERT_EQ(error, 0) << st_strerror(error);
}

void TwoSides::connect(const void* private_data, std::size_t length) {
  const auto attr = client.attr(1);
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  const auto error = stm_connect(client.connection, ":3000", -1, private_data, length);
  ASSERT_EQ(error, 0) << st_strerror(error);
}

void TwoSides::establish() {
  listen();
  connect();
  server.connection = server.next(STM_REQUEST).connection;
  const auto attr = server.attr(2);
  ASSERT_EQ(stm_accept(server.connection, &attr, nullptr, 0), 0);
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  ASSERT_EQ(server.next(STM_CONNECTED).status, 0);
}

}  // namespace stp::test
