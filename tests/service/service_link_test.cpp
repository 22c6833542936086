// SPDX-License-Identifier: BSD-3-Clause
// The state of the link, as clients and the log are told of it.
#include "tests/service/service_fixture.h"

namespace stp::service {
namespace {

class ServiceLinkTest : public ServiceFixture {
 protected:
  ClientPage& page_of(ClientId client) {
    EXPECT_EQ(ask(client, RequestKind::kHello), 0);
    return *reinterpret_cast<ClientPage*>(attachments.memory->data());
  }
  // Until the service has looked at the link once more.
  bool shows(ClientPage& page, port::LinkState state) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (page.link_state.load() != static_cast<std::uint32_t>(state)) {
      if (std::chrono::steady_clock::now() > until) return false;
      service.poll();
    }
    return true;
  }
};

TEST_F(ServiceLinkTest, AChangeIsOnThePagesOfAllAndWakesWhoSleepsThere) {
  auto& page = page_of(alice);
  auto& other = page_of(bob);
  EXPECT_TRUE(shows(page, port::LinkState::kUp));
  const auto changes = page.link_changes.load();
  const auto events = page.events.load();
  port->link_state = port::LinkState::kNoCarrier;
  EXPECT_TRUE(shows(page, port::LinkState::kNoCarrier));
  EXPECT_TRUE(shows(other, port::LinkState::kNoCarrier));
  EXPECT_EQ(page.link_changes.load(), changes + 1);
  EXPECT_NE(page.events.load(), events);
  ASSERT_EQ(ask(alice, RequestKind::kLinkState), 0);
  EXPECT_EQ(reply.state, static_cast<std::uint32_t>(port::LinkState::kNoCarrier));
  EXPECT_EQ(reply.value, changes + 1);
  EXPECT_EQ(reply.ipv4, 0x0a090001U);
}

TEST_F(ServiceLinkTest, EachChangeIsNotedOnceAndOfMostTheLast) {
  auto& page = page_of(alice);
  EXPECT_FALSE(service.next_link_change());
  constexpr unsigned kChanges = 20;
  for (unsigned i = 0; i < kChanges; ++i) {
    const auto state = i % 2 == 0 ? port::LinkState::kDown : port::LinkState::kUp;
    port->link_state = state;
    ASSERT_TRUE(shows(page, state));
  }
  std::uint64_t told = 0, passed_over = 0;
  auto last = port::LinkState::kUnknown;
  while (const auto change = service.next_link_change()) {
    ++told;
    passed_over += change->passed_over;
    last = change->state;
  }
  EXPECT_LT(told, kChanges);
  EXPECT_EQ(told + passed_over, kChanges);
  EXPECT_EQ(last, port::LinkState::kUp);
}

}  // namespace
}  // namespace stp::service
