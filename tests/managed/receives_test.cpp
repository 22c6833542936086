// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/receives.h"

#include "libst/managed/operations.h"
#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

using Breach = Receives::Breach;

// A receives what B sends.
class MessagesToReceives : public TwoSessions {
 protected:
  Session& here() { return *a.session; }
  Session& there() { return *b.session; }

  PostedReceive receive(std::uint64_t context, std::size_t length) {
    PostedReceive receive;
    receive.context = context;
    receive.memory = MemoryUse(a.memory);
    receive.ptr = a.bytes.data();
    receive.length = length;
    return receive;
  }
  void post(std::uint64_t context, std::size_t length) {
    ASSERT_TRUE(a.reports.receives().reserve());
    auto posted = receive(context, length);
    posted.id = next_id++;
    receives.post(std::move(posted));
  }
  // Sends as a Write.
  void write(std::uint64_t length, std::uint32_t tag = 0) {
    ASSERT_EQ(there().sequencer.write(1, {}, length, {.tag = tag}), 0);
  }
  // Sends through the ring.
  void put(std::size_t length, std::uint32_t tag = 0) {
    if (ring == 0) ring = serve_ring(a, b);
    Operation sending;
    sending.id = 1;
    sending.length = length;
    sending.tag = tag;
    const iovec bytes{b.bytes.data(), length};
    ASSERT_EQ(there().eager_out.send(there().sequencer, there().staging, sending,
                                     {.head = nullptr, .head_length = 0, .parts = {&bytes, 1}},
                                     there().eager_in, false),
              0);
  }
  // Hands over what B has to say, and lets A match.
  Receives::Progress arrive() {
    carry(b, a);
    return handle();
  }
  Receives::Progress handle() {
    for (const auto& c : a.completions()) {
      if (c.kind == Completion::Kind::kArrived) {
        EXPECT_TRUE(here().on_arrived(c));
      }
      if (c.kind == Completion::Kind::kReceive) receives.on_received(here(), c);
    }
    return receives.match(here());
  }
  // What A has granted leaves B and arrives.
  void grant() {
    carry(a, b);
    arrive();
  }
  void expect_event(std::uint64_t context, int status, std::uint32_t message) {
    const auto event = a.event();
    EXPECT_EQ(event.kind, unsigned{STM_RECEIVE});
    EXPECT_EQ(event.context, context);
    EXPECT_EQ(event.status, status);
    EXPECT_EQ(event.message, message);
  }
  void use_pool(std::size_t posted, bool on_arrival = true) {
    pool = std::make_shared<Pool>(a.domain, 8);
    for (std::size_t i = 0; i < posted; ++i) pool->receives.push_back(receive(100 + i, 1000));
    auto outlets = a.outlets();
    outlets.pool = pool;
    outlets.on_arrival = on_arrival;
    a.reports.close();
    ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  }

  std::shared_ptr<Pool> pool;
  Receives receives{a.reports};
  std::uint64_t next_id = context::kFirstReceive;
  std::uint32_t ring = 0;
};

TEST_F(MessagesToReceives, AreReportedInTheOrderOfSendingWhicheverWayTheyCome) {
  post(1, 9000);
  post(2, 100);
  write(9000);
  put(5, 77);
  arrive();
  EXPECT_EQ(receives.size(), 2U);
  EXPECT_EQ(a.event().kind, 0U) << "the second one is complete, the first one is not";
  grant();
  expect_event(1, 0, 1);
  const auto second = a.event();
  EXPECT_EQ(second.context, 2U);
  EXPECT_EQ(second.tag, 77U);
  EXPECT_EQ(second.length, 5U);
  EXPECT_EQ(receives.size(), 0U);
}

TEST_F(MessagesToReceives, AMessageThatIsTooLongEndsItsReceiveAlone) {
  post(1, 10);
  post(2, 10);
  post(3, 10);
  write(11);
  put(11);
  put(10);
  EXPECT_TRUE(arrive().any);
  expect_event(1, -EMSGSIZE, 1);
  expect_event(2, -EMSGSIZE, 2);
  expect_event(3, 0, 3);
}

TEST_F(MessagesToReceives, TheBytesFromTheRingAreInTheReceive) {
  post(1, 10);
  std::memcpy(b.bytes.data(), "salve", 5);
  put(5);
  arrive();
  EXPECT_EQ(std::memcmp(a.bytes.data(), "salve", 5), 0);
}

TEST_F(MessagesToReceives, AWriteWithoutANumberIsABreach) {
  write(10);
  auto offers = take(b);
  ASSERT_EQ(offers.size(), 1U);
  offers[0].payload_length = 0;
  here().sequencer.receive(offers[0], now);
  post(1, 10);
  EXPECT_EQ(handle().breach, Breach::kUnnumbered);
}

// protocol: 9.41
TEST_F(MessagesToReceives, AMessageThatLeavesOutSlotsIsABreach) {
  put(10);
  take(b);
  encode(EagerHead{2, 10, 0, 0}, here().eager_in.ring().slot(4));
  Completion arrived{};
  arrived.request = ring;
  arrived.offset = 4 * kEagerSlot;
  arrived.length = kEagerHead + 10;
  ASSERT_TRUE(here().on_arrived(arrived));
  post(1, 10);
  EXPECT_EQ(receives.match(here()).breach, Breach::kRing);
  EXPECT_EQ(receives.size(), 1U) << "the receive is not used up";
}

TEST_F(MessagesToReceives, WhatWasPostedFirstIsCancelled) {
  post(5, 10);
  post(5, 20);
  EXPECT_FALSE(receives.cancel(6, next_id));
  EXPECT_FALSE(receives.cancel(5, context::kFirstReceive)) << "an operation was posted before it";
  EXPECT_TRUE(receives.cancel(5, next_id));
  expect_event(5, -ECANCELED, 0);
  write(20);
  arrive();
  EXPECT_TRUE(receives.uses(*a.memory));
  EXPECT_EQ(receives.find_matched(5, next_id), context::kFirstReceive + 1);
  EXPECT_FALSE(receives.find_matched(5, context::kFirstReceive));
  EXPECT_FALSE(receives.cancel(5, next_id)) << "its message is arriving";
}

// The program cancels as many receives as it has posted with one context.
TEST_F(MessagesToReceives, TheNextOfAContextIsFoundOnceTheFirstIsBeingCancelled) {
  post(5, 10);
  post(5, 20);
  write(10);
  write(20);
  arrive();
  const auto first = receives.find_matched(5, next_id);
  ASSERT_EQ(first, context::kFirstReceive);
  receives.cancelled(*first);
  EXPECT_EQ(receives.find_matched(5, next_id), context::kFirstReceive + 1);
}

// protocol: 9.35
TEST_F(MessagesToReceives, OnlyAMessageWithoutAReceiveStarves) {
  auto outlets = a.outlets();
  outlets.receive_wait = kSecond;
  a.reports.close();
  ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  receives.watch_wait(here(), now, true);
  EXPECT_EQ(receives.starved_at(), kNever) << "there is no message";
  write(10);
  arrive();
  receives.watch_wait(here(), now, false);
  EXPECT_EQ(receives.starved_at(), kNever) << "the connection is not up";
  receives.watch_wait(here(), now, true);
  EXPECT_EQ(receives.starved_at(), now + kSecond);
  receives.watch_wait(here(), now + 1, true);
  EXPECT_EQ(receives.starved_at(), now + kSecond) << "the time counts from the beginning";
  post(1, 10);
  receives.match(here());
  EXPECT_EQ(receives.starved_at(), kNever);
}

// protocol: 9.35
TEST_F(MessagesToReceives, AMessageInTheRingCanStarveToo) {
  auto outlets = a.outlets();
  outlets.receive_wait = kSecond;
  a.reports.close();
  ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  put(10);
  arrive();
  receives.watch_wait(here(), now, true);
  EXPECT_EQ(receives.starved_at(), now + kSecond);
}

TEST_F(MessagesToReceives, OnArrivalAMessageTakesAReceiveBeforeItsTurn) {
  use_pool(1);
  write(30, 31);
  write(40, 41);
  const auto offers = take(b);
  ASSERT_EQ(offers.size(), 2U);
  here().sequencer.receive(offers[1], now);
  EXPECT_FALSE(handle().any) << "the last receive is for the message that is missing";
  pool->receives.push_back(receive(101, 1000));
  EXPECT_TRUE(handle().any);
  EXPECT_EQ(receives.span(&here()), 2U);
  grant();
  EXPECT_EQ(a.event().kind, 0U) << "it is complete, but the first one is missing";
  here().sequencer.receive(offers[0], now);
  handle();
  grant();
  expect_event(101, 0, 1);
  expect_event(100, 0, 2);
}

TEST_F(MessagesToReceives, InTurnAMessageTakesNoReceiveEarly) {
  use_pool(2, false);
  write(30);
  write(40);
  here().sequencer.receive(take(b)[1], now);
  EXPECT_FALSE(handle().any);
  EXPECT_EQ(pool->receives.size(), 2U);
}

TEST_F(MessagesToReceives, TheWatermarkIsReportedOnce) {
  use_pool(3);
  ASSERT_EQ(receives.set_watermark(1), 0);
  for (int i = 0; i < 3; ++i) write(30);
  arrive();
  const auto high = a.event();
  EXPECT_EQ(high.kind, unsigned{STM_HIGH});
  EXPECT_EQ(high.length, 3U);
  EXPECT_EQ(a.event().kind, 0U);
  ASSERT_TRUE(a.queue->reserve(kPlaces - 2 - 3));
  EXPECT_EQ(receives.set_watermark(1), -EAGAIN) << "there is no place for its event";
}

TEST_F(MessagesToReceives, TheEndLeavesNoGapInTheirOrder) {
  for (std::uint64_t context = 1; context <= 4; ++context) post(context, 9000);
  put(1);
  write(9000);
  put(1);
  arrive();
  expect_event(1, 0, 1);
  receives.drop_behind_gap(&here(), -ENOTCONN);
  receives.flush(-ENOTCONN);
  for (std::uint64_t context = 2; context <= 4; ++context) expect_event(context, -ENOTCONN, 0);
  EXPECT_EQ(receives.size(), 0U);
}

Completion request(std::uint32_t number) {
  Completion c{};
  c.kind = Completion::Kind::kReadRequest;
  c.request = number;
  c.length = 100;
  return c;
}

TEST_F(TwoSessions, ReadRequestsAreReportedAsTheQueueHasPlaces) {
  ReadRequests requests;
  constexpr std::uint32_t kFree = kPlaces - 2;  // two are for the connection's own events
  for (std::uint32_t i = 1; i <= kFree + 1; ++i) ASSERT_TRUE(requests.add(request(i)));
  requests.tell(a.reports);
  for (std::uint32_t i = 1; i <= kFree; ++i) {
    const auto told = a.event();
    EXPECT_EQ(told.kind, unsigned{STM_READ_REQUEST});
    EXPECT_EQ(told.request, i);
    EXPECT_EQ(told.length, 100U);
  }
  EXPECT_FALSE(requests.empty());
  EXPECT_EQ(a.event().kind, 0U);
  requests.tell(a.reports);
  EXPECT_EQ(a.event().request, kFree + 1);
  EXPECT_TRUE(requests.empty());
}

// A peer may end a request and send another one, as often as it likes.
TEST_F(TwoSessions, ReadRequestsThatCannotBeReportedAreBounded) {
  ReadRequests requests;
  for (std::uint32_t i = 1; i <= ReadRequests::kMost; ++i) ASSERT_TRUE(requests.add(request(i)));
  EXPECT_FALSE(requests.add(request(0)));
  requests.clear();
  EXPECT_TRUE(requests.add(request(0)));
}

}  // namespace
}  // namespace stp::managed
