// SPDX-License-Identifier: BSD-3-Clause
// The state of the link, as clients and the log are told of it.
#include <chrono>
#include <thread>

#include "tests/host/service_fixture.h"

namespace stp::host {
namespace {

class LinkWatchTest : public ServiceFixture {
 protected:
  ipc::ClientPage& page_of(ClientId client) {
    EXPECT_EQ(ask(client, ipc::RequestKind::kHello), 0);
    return *reinterpret_cast<ipc::ClientPage*>(attachments.memory->data());
  }
  // Until the service has looked at the link once more.
  bool shows(ipc::ClientPage& page, port::LinkState state) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (page.link_state.load() != static_cast<std::uint32_t>(state)) {
      if (std::chrono::steady_clock::now() > until) return false;
      service.drive()->poll();
    }
    return true;
  }
};

TEST_F(LinkWatchTest, AChangeIsOnThePagesOfAllAndWakesWhoSleepsThere) {
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
  ASSERT_EQ(ask(alice, ipc::RequestKind::kLinkState), 0);
  EXPECT_EQ(reply.state, static_cast<std::uint32_t>(port::LinkState::kNoCarrier));
  EXPECT_EQ(reply.value, changes + 1);
  EXPECT_EQ(reply.ipv4, 0x0a090001U);
}

TEST_F(LinkWatchTest, AnAddressThatChangesIsOnThePagesAndIsNoChangeOfTheState) {
  auto& page = page_of(alice);
  EXPECT_EQ(page.link_ipv4.load(), 0x0a090001U);
  const auto changes = page.link_changes.load();
  for (const std::uint32_t address : {0x0a090007U, 0U}) {
    port->address = address;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (page.link_ipv4.load() != address && std::chrono::steady_clock::now() < until)
      service.drive()->poll();
    EXPECT_EQ(page.link_ipv4.load(), address);
    EXPECT_EQ(page_of(bob).link_ipv4.load(), address);
  }
  EXPECT_EQ(page.link_changes.load(), changes);
}

// What a program writes there is its own affair.
TEST_F(LinkWatchTest, WhatAProgramWritesOnItsPageIsNotBelieved) {
  auto& page = page_of(alice);
  EXPECT_TRUE(shows(page, port::LinkState::kUp));
  page.link_state = 77;
  page.link_changes = 77;
  page.link_ipv4 = 77;
  ASSERT_EQ(ask(alice, ipc::RequestKind::kLinkState), 0);
  EXPECT_EQ(reply.state, static_cast<std::uint32_t>(port::LinkState::kUp));
  EXPECT_EQ(reply.ipv4, 0x0a090001U);
  const auto changes = reply.value;
  port->link_state = port::LinkState::kDown;
  EXPECT_TRUE(shows(page, port::LinkState::kDown));
  EXPECT_EQ(page.link_changes.load(), changes + 1);
  EXPECT_EQ(page.link_ipv4.load(), 0x0a090001U);
}

TEST_F(LinkWatchTest, TheLengthOfAStateAndTheSpeedAreTold) {
  auto& page = page_of(alice);
  port->megabits = 25'000;
  const auto begin = std::chrono::steady_clock::now();
  port->link_state = port::LinkState::kMtu;
  EXPECT_TRUE(shows(page, port::LinkState::kMtu));
  const auto changed = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto asked = std::chrono::steady_clock::now();
  ASSERT_EQ(ask(alice, ipc::RequestKind::kLinkState), 0);
  const auto age = std::chrono::nanoseconds(reply.age);
  constexpr std::chrono::milliseconds kOlder{1};  // the Service's clock runs in steps
  EXPECT_GE(age + kOlder, asked - changed);
  EXPECT_LE(age, std::chrono::steady_clock::now() - begin + kOlder);
  EXPECT_EQ(reply.megabits, 25'000U);
  EXPECT_EQ(reply.mtu, 9'000U);
}

TEST_F(LinkWatchTest, EachChangeIsNotedOnceAndOfMostTheLast) {
  auto& page = page_of(alice);
  EXPECT_FALSE(service.drive()->next_link_change());
  constexpr unsigned kChanges = 20;
  for (unsigned i = 0; i < kChanges; ++i) {
    const auto state = i % 2 == 0 ? port::LinkState::kDown : port::LinkState::kUp;
    port->link_state = state;
    ASSERT_TRUE(shows(page, state));
  }
  std::uint64_t told = 0, passed_over = 0;
  auto last = port::LinkState::kUnknown;
  while (const auto change = service.drive()->next_link_change()) {
    ++told;
    passed_over += change->passed_over;
    last = change->state;
  }
  EXPECT_LT(told, kChanges);
  EXPECT_EQ(told + passed_over, kChanges);
  EXPECT_EQ(last, port::LinkState::kUp);
}

}  // namespace
}  // namespace stp::host
