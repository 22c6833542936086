// SPDX-License-Identifier: BSD-3-Clause
// What a program is told of its link: by a question, and by events.
#include <poll.h>

#include <chrono>
#include <thread>

#include "tests/managed/rough_link.h"

namespace stp::test {
namespace {

using port::LinkState;

constexpr std::uint64_t kContext = 77;
constexpr std::chrono::seconds kPatience{20};

stm_link_info_t link_of(const Side& side) {
  stm_link_info_t info{};
  info.size = sizeof info;
  EXPECT_EQ(stm_link_query(side.domain, &info), 0);
  return info;
}

template <typename Condition>
bool eventually(Condition holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class LinkOfADomain : public ManagedApi {};
STP_BOTH_WAYS(LinkOfADomain);

TEST_P(LinkOfADomain, IsToldWhenAskedFor) {
  const auto first = link_of(client);
  EXPECT_EQ(first.state, STM_LINK_UP);
  EXPECT_EQ(first.changes, 0U);
  EXPECT_GE(first.mtu, 1'500U);
  EXPECT_STREQ(first.trouble, "");
  EXPECT_TRUE(eventually([&] { return link_of(client).age > first.age; }));
}

TEST_P(LinkOfADomain, IsTheFirstEventOfWhoeverWatches) {
  EXPECT_TRUE(client.quiet());
  ASSERT_EQ(stm_link_watch(client.domain, client.queue, kContext), 0);
  const auto event = client.next(STM_LINK);
  EXPECT_EQ(event.status, 0);
  EXPECT_EQ(event.context, kContext);
  EXPECT_EQ(event.tag, static_cast<unsigned>(STM_LINK_UP));
  EXPECT_EQ(event.message, 0U);
  EXPECT_EQ(event.connection, nullptr);
  EXPECT_TRUE(client.quiet()) << "nothing has changed since";
}

TEST_P(LinkOfADomain, NeedsAQueueOfTheDomainWithAPlace) {
  EXPECT_EQ(stm_link_watch(client.domain, server.queue, 0), -EINVAL);
  EXPECT_EQ(stm_link_watch(nullptr, client.queue, 0), -EBADF);
  EXPECT_EQ(stm_link_watch(client.domain, reinterpret_cast<stm_queue_t>(kContext), 0), -EBADF);
  stm_link_info_t info{};
  EXPECT_EQ(stm_link_query(client.domain, &info), -EINVAL) << "its size is not set";
  EXPECT_EQ(stm_link_query(client.domain, nullptr), -EINVAL);
  EXPECT_EQ(stm_link_query(nullptr, &info), -EBADF);
  stm_queue_t small = nullptr;
  ASSERT_EQ(stm_queue_create(client.domain, 1, &small), 0);
  ASSERT_EQ(stm_queue_post(small, 1), 0);
  EXPECT_EQ(stm_link_watch(client.domain, small, 0), -EAGAIN);
  EXPECT_EQ(stm_queue_destroy(small), 0) << "nothing watches with it";
}

TEST_P(LinkOfADomain, OfADomainIsToldToOneQueue) {
  stm_queue_t other = nullptr;
  ASSERT_EQ(stm_queue_create(client.domain, 4, &other), 0);
  ASSERT_EQ(stm_link_watch(client.domain, other, 1), 0);
  EXPECT_EQ(stm_queue_destroy(other), -EBUSY);
  ASSERT_EQ(stm_link_watch(client.domain, client.queue, 2), 0);
  EXPECT_EQ(client.next(STM_LINK).context, 2U);
  EXPECT_EQ(stm_queue_destroy(other), 0);
  ASSERT_EQ(stm_link_watch(client.domain, nullptr, 0), 0);
  EXPECT_EQ(stm_queue_destroy(client.queue), -EBUSY) << "its connection uses it";
  ASSERT_EQ(stm_connection_close(client.connection), 0);
  EXPECT_EQ(stm_queue_destroy(client.queue), 0);
}

TEST(LinkEvents, TellEachChange) {
  const RoughLink link;
  TwoSides sides;
  auto& watches = sides.client;
  ASSERT_EQ(stm_link_watch(watches.domain, watches.queue, kContext), 0);
  EXPECT_EQ(watches.next(STM_LINK).tag, static_cast<unsigned>(STM_LINK_UP));
  struct Change {
    LinkState state;
    int status;
  };
  unsigned changes = 0;
  for (const auto change :
       {Change{LinkState::kDown, -ENETDOWN}, Change{LinkState::kNoCarrier, -ENETDOWN},
        Change{LinkState::kGone, -ENETDOWN}, Change{LinkState::kMtu, 0},
        Change{LinkState::kUp, 0}}) {
    link.port->link_state = change.state;
    const auto event = watches.next(STM_LINK);
    EXPECT_EQ(event.tag, static_cast<unsigned>(change.state));
    EXPECT_EQ(event.status, change.status);
    EXPECT_EQ(event.message, ++changes);
    EXPECT_EQ(link_of(watches).state, static_cast<unsigned>(change.state));
  }
  EXPECT_TRUE(sides.server.quiet()) << "it has not asked";
}

TEST(LinkEvents, WakeWhoSleepsOnTheDescriptor) {
  const RoughLink link;
  Side side;
  ASSERT_EQ(stm_link_watch(side.domain, side.queue, kContext), 0);
  EXPECT_EQ(side.next(STM_LINK).tag, static_cast<unsigned>(STM_LINK_UP));
  pollfd file{stm_queue_fd(side.queue), POLLIN, 0};
  link.port->link_state = LinkState::kNoCarrier;
  ASSERT_EQ(::poll(&file, 1, 20'000), 1);
  EXPECT_EQ(side.next(STM_LINK).tag, static_cast<unsigned>(STM_LINK_NO_CARRIER));
}

TEST(LinkEvents, WaitForAPlaceAndTellThePresentStateThen) {
  const RoughLink link;
  Side side;
  stm_queue_t small = nullptr;
  ASSERT_EQ(stm_queue_create(side.domain, 1, &small), 0);
  pollfd file{stm_queue_fd(small), POLLIN, 0};
  ASSERT_EQ(stm_link_watch(side.domain, small, kContext), 0);
  for (const auto state : {LinkState::kDown, LinkState::kNoCarrier, LinkState::kGone}) {
    link.port->link_state = state;
    ASSERT_TRUE(eventually([&] { return link_of(side).state == static_cast<unsigned>(state); }));
  }
  stm_event_t event{};
  ASSERT_EQ(stm_queue_poll(small, &event, 1), 1);
  EXPECT_EQ(event.tag, static_cast<unsigned>(STM_LINK_UP));
  ASSERT_EQ(::poll(&file, 1, 20'000), 1) << "the place that is free now is taken without a call";
  ASSERT_EQ(stm_queue_poll(small, &event, 1), 1);
  EXPECT_EQ(event.tag, static_cast<unsigned>(STM_LINK_GONE));
  EXPECT_EQ(event.message, 3U);
  EXPECT_EQ(stm_queue_poll(small, &event, 1), 0);
}

TEST(LinkEvents, TellThatTheDaemonHasEnded) {
  Daemon daemon;
  const UseLink link(daemon.link());
  Side side;
  ASSERT_EQ(stm_link_watch(side.domain, side.queue, kContext), 0);
  EXPECT_EQ(side.next(STM_LINK).status, 0);
  daemon.stop();
  const auto event = side.next(STM_LINK);
  EXPECT_EQ(event.status, -ENOTCONN);
  EXPECT_EQ(event.tag, static_cast<unsigned>(STM_LINK_UNKNOWN));
  stm_link_info_t info{};
  info.size = sizeof info;
  EXPECT_EQ(stm_link_query(side.domain, &info), -ENOTCONN);
}

TEST(LinkFacts, TheTroubleIsToldWithItsRemedyAndTheSpeed) {
  const RoughLink link;
  Side side;
  link.port->loses_long_frames = true;
  link.port->megabits = 40'000;
  link.port->link_state = LinkState::kMtu;
  ASSERT_TRUE(eventually([&] { return link_of(side).state == STM_LINK_MTU; }));
  const auto info = link_of(side);
  EXPECT_EQ(std::string(info.trouble), link.port->trouble());
  EXPECT_EQ(info.megabits, 40'000U);
  EXPECT_EQ(info.changes, 1U);
}

// The peer gives an operation up, too, if nothing of it arrives: the status is its, not the cause.
TEST(LinkFacts, TheTroubleIsToldOfAnOperationThatWasCancelled) {
  const RoughLink link;
  TwoSides sides;
  ASSERT_NO_FATAL_FAILURE(sides.establish());
  link.port->loses_long_frames = true;
  auto& client = sides.client;
  const Buffer mine(1 << 16);
  const auto memory = client.memory(mine.data(), mine.size());
  ASSERT_EQ(stm_send(client.connection, kContext, 0, 0, memory, mine.data(), mine.size()), 0);
  ASSERT_EQ(stm_cancel(client.connection, kContext), 0);
  EXPECT_EQ(client.completion(kContext).status, -ECANCELED);
  const std::string text = st_strerror(-ECANCELED);
  EXPECT_NE(text.find("the link has trouble: " + link.port->trouble()), std::string::npos) << text;
  EXPECT_EQ(stm_memory_release(memory), 0);
}

// protocol: 13.4
TEST(LinkFacts, APeerOverUdpIsNamedByItsAddressAndPort) {
  const UseLink link("udp:127.0.0.1,port=0");
  TwoSides sides;
  stm_peer_info_t info{};
  info.size = sizeof info;
  const auto attr = sides.client.attr(1);
  stm_connection_t unused = nullptr;
  ASSERT_EQ(stm_connection_create(sides.client.domain, &attr, &unused), 0);
  EXPECT_EQ(stm_peer_query(unused, &info), -ENOTCONN);
  EXPECT_EQ(stm_connection_close(unused), 0);
  ASSERT_NO_FATAL_FAILURE(sides.establish());
  ASSERT_EQ(stm_peer_query(sides.client.connection, &info), 0);
  EXPECT_EQ(std::string(info.address).find("127.0.0.1/"), 0U) << info.address;
  EXPECT_EQ(std::string(info.trouble), "");
}

TEST(LinkFacts, APeerOnEthernetIsNamedByItsMacAddress) {
  const UseLink link("loop");
  TwoSides sides;
  ASSERT_NO_FATAL_FAILURE(sides.establish());
  stm_peer_info_t info{};
  info.size = sizeof info;
  ASSERT_EQ(stm_peer_query(sides.client.connection, &info), 0);
  EXPECT_EQ(std::string(info.address), "[02:00:00:00:00:01]");
}

TEST(LinkFacts, TheAddressIsThePresentOne) {
  const RoughLink link;
  Side side;
  const auto address = [&] {
    stm_domain_info_t info{};
    info.size = sizeof info;
    EXPECT_EQ(stm_domain_query(side.domain, &info), 0);
    return info.ipv4;
  };
  EXPECT_EQ(address(), 0x0a090001U);
  for (const std::uint32_t next : {0x0a090063U, 0U, 0x0a090002U}) {
    link.port->address = next;
    EXPECT_TRUE(eventually([&] { return address() == next; }));
  }
}

}  // namespace
}  // namespace stp::test
