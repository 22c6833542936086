// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/operations.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

// protocol: 9.32
TEST(WriteWindow, NoWriteBeginsWhile64OthersHaveBegunSinceTheOldestThatIsNotConfirmed) {
  WriteWindow window;
  const auto oldest = window.begin();
  for (int i = 1; i < 64; ++i) {
    ASSERT_TRUE(window.may_begin()) << i;
    const auto write = window.begin();
    if (i % 3 != 0) window.complete(write);
  }
  EXPECT_FALSE(window.may_begin());
  window.complete(oldest + 3);
  EXPECT_FALSE(window.may_begin()) << "the oldest one is still under way";
  window.complete(oldest);
  EXPECT_TRUE(window.may_begin());
}

class OperationLists : public ::testing::Test {
 protected:
  OperationList list;

  Operation& add(std::uint64_t context) {
    Operation operation;
    operation.context = context;
    return list.add(operation);
  }
  std::vector<std::uint64_t> contexts() const {
    std::vector<std::uint64_t> all;
    for (const auto* each = list.oldest(); each != nullptr; each = OperationList::next(*each))
      all.push_back(each->context);
    return all;
  }
};

TEST_F(OperationLists, stand_in_the_order_of_posting_whichever_completes_first) {
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.oldest(), nullptr);
  std::vector<Operation*> operations;
  for (std::uint64_t i = 0; i < 5; ++i) operations.push_back(&add(i));
  EXPECT_EQ(contexts(), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  list.remove(*operations[2]);
  list.remove(*operations[0]);
  list.remove(*operations[4]);
  EXPECT_EQ(contexts(), (std::vector<std::uint64_t>{1, 3}));
  add(5);
  EXPECT_EQ(contexts(), (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_EQ(list.size(), 3U);
}

TEST_F(OperationLists, the_next_to_begin_is_the_oldest_that_has_not) {
  auto& first = add(0);
  auto& second = add(1);
  auto& third = add(2);
  EXPECT_EQ(list.waiting(), &first);
  list.begun(first);
  EXPECT_EQ(list.waiting(), &second);
  list.remove(second);  // cancelled before it began
  EXPECT_EQ(list.waiting(), &third);
  list.begun(third);
  EXPECT_EQ(list.waiting(), nullptr);
  EXPECT_EQ(list.waiting(), nullptr);
  auto& fourth = add(3);
  EXPECT_EQ(list.waiting(), &fourth);
}

TEST_F(OperationLists, what_has_begun_ahead_of_others_waits_no_more) {
  auto& first = add(0);
  auto& second = add(1);
  auto& third = add(2);
  list.begun(second);
  EXPECT_EQ(list.waiting(), &first);
  list.remove(first);  // cancelled before it began
  EXPECT_EQ(list.waiting(), &third);
  list.begun(third);
  EXPECT_EQ(list.waiting(), nullptr);
}

TEST_F(OperationLists, a_number_is_of_one_operation_only) {
  auto& first = add(0);
  const auto id = first.id;
  EXPECT_NE(id & OperationList::kMark, 0U);
  EXPECT_LT(id, 2 * OperationList::kMark);
  EXPECT_EQ(list.find(id), &first);
  EXPECT_EQ(list.find(~std::uint64_t{0}), nullptr);
  list.remove(first);
  EXPECT_EQ(list.find(id), nullptr);
  for (int i = 0; i < 100; ++i) {
    auto& again = add(1);
    ASSERT_NE(again.id, id) << "the place is used again, the number is not";
    ASSERT_EQ(list.find(id), nullptr);
    list.remove(again);
  }
}

TEST_F(OperationLists, no_operation_has_number_0) {
  EXPECT_EQ(list.find(0), nullptr);
  auto& first = add(0);
  EXPECT_EQ(list.find(0), nullptr);
  list.remove(first);
  EXPECT_EQ(list.find(0), nullptr) << "the place is free";
}

TEST_F(OperationLists, none_moves_while_others_come) {
  auto& first = add(42);
  const auto id = first.id;
  for (std::size_t i = 1; i < OperationList::kMost; ++i) add(i);
  EXPECT_EQ(list.size(), OperationList::kMost);
  EXPECT_EQ(list.find(id), &first);
  EXPECT_EQ(first.context, 42U);
  list.forget();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.waiting(), nullptr);
  EXPECT_EQ(list.find(id), nullptr);
}

using Kind = Operation::Kind;
using wire::Op;

constexpr std::uint32_t kKey = 77;
constexpr std::uint64_t kBase = 0x1000, kLength = 4096;

// A posts; B serves a region.
class PostedOperations : public TwoSessions {
 protected:
  Operation operation(Kind kind, std::uint64_t context, unsigned flags = 0) {
    Operation operation;
    operation.kind = kind;
    operation.context = context;
    operation.flags = flags;
    operation.memory = a.memory.get();
    operation.ptr = a.bytes.data();
    operation.length = 8;
    operation.key = kKey;
    operation.address = kBase;
    return operation;
  }
  bool add(const Operation& operation, std::uint64_t at) {
    operations.draft() = operation;
    return operations.post(at);
  }
  void post(const Operation& operation) {
    ASSERT_TRUE(add(operation, posted++));
    operations.begin(*a.session);
  }
  void open_region(unsigned access = STM_REMOTE_WRITE | STM_REMOTE_READ) {
    regions.find(a.session->sequencer, kKey);
    carry(a, b);
    serve(access);
  }
  // B answers the request for a region.
  void serve(unsigned access = STM_REMOTE_WRITE) {
    for (const auto& c : b.completions())
      served.serve(b.session->sequencer, c, {5, {}, kLength}, {.base = kBase, .access = access});
    carry(b, a);
    for (const auto& c : a.completions()) regions.on_answer(c);
  }
  // The Sequencer reports the end of the operation with that context.
  void complete(std::uint64_t context, int status, std::uint32_t message = 0) {
    Completion c{};
    c.context = operations.find(context)->id;
    c.status = status;
    c.length = 8;
    c.message = message;
    operations.on_completion(*a.session, c);
  }
  void expect_event(std::uint32_t kind, std::uint64_t context, int status) {
    const auto event = a.event();
    EXPECT_EQ(event.kind, kind);
    EXPECT_EQ(event.context, context);
    EXPECT_EQ(event.status, status);
  }

  PeerRegions regions;
  ServedRegions served;
  Operations operations{a.reports, regions};
  std::uint64_t posted = 0;
};

TEST_F(PostedOperations, BeginInTheOrderOfPosting) {
  post(operation(Kind::kPut, 1));
  post(operation(Kind::kSend, 2));
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestMemoryRegion}) << "the region is not open yet";
  serve();
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b), (std::vector{Op::kData, Op::kRequestToSend}));
}

TEST_F(PostedOperations, AFencedOneWaitsForAllBeforeIt) {
  open_region();
  post(operation(Kind::kPut, 1));
  post(operation(Kind::kPut, 2, STM_FENCE));
  EXPECT_EQ(carry(a, b), std::vector{Op::kData});
  complete(1, 0);
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b), std::vector{Op::kData});
}

TEST_F(PostedOperations, EachNeedsAPlaceForItsEvent) {
  for (std::size_t i = 0; i < kPlaces - 2; ++i)
    ASSERT_TRUE(add(operation(Kind::kSend, i), posted++));
  EXPECT_FALSE(add(operation(Kind::kSend, 99), posted));
  EXPECT_EQ(operations.size(), kPlaces - 2);
  operations.flush(-ENOTCONN);
  for (std::size_t i = 0; i < kPlaces - 2; ++i) expect_event(STM_SEND, i, -ENOTCONN);
  EXPECT_TRUE(operations.empty());
}

TEST_F(PostedOperations, WhatThePeerDoesNotPermitFailsAtOnce) {
  open_region(STM_REMOTE_READ);
  post(operation(Kind::kPut, 1));
  expect_event(STM_PUT, 1, -EACCES);
  auto beyond = operation(Kind::kGet, 2);
  beyond.address = kBase + kLength - 7;
  post(beyond);
  expect_event(STM_GET, 2, -ERANGE);
  beyond.address = kBase - 1;
  post(beyond);
  expect_event(STM_GET, 2, -ERANGE);
  EXPECT_TRUE(carry(a, b).empty());
  EXPECT_EQ(a.memory->uses, 0U);
}

// protocol: 9.32
TEST_F(PostedOperations, AtMost64WritesAreOpen) {
  ASSERT_EQ(a.queue->resize(200), 0);
  for (std::uint64_t i = 0; i < 66; ++i) post(operation(Kind::kSend, i));
  EXPECT_EQ(carry(a, b).size(), 64U);
  complete(1, 0);
  operations.begin(*a.session);
  EXPECT_TRUE(carry(a, b).empty()) << "the oldest one is still open";
  complete(0, 0);
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b).size(), 2U);
}

TEST_F(PostedOperations, AShortMessageGoesThroughTheRing) {
  serve_ring(b, a);
  post(operation(Kind::kSend, 1));
  EXPECT_EQ(carry(a, b), std::vector{Op::kData});
  auto arrived = b.completions();
  ASSERT_EQ(arrived.size(), 1U);
  ASSERT_TRUE(b.session->on_arrived(arrived[0]));
  ASSERT_NE(b.session->arrived(), nullptr);
  EXPECT_EQ(b.session->arrived()->head.length, 8U);
  Completion c{};
  c.context = operations.find(1)->id;
  c.length = kEagerHead + 8;
  operations.on_completion(*a.session, c);
  const auto event = a.event();
  EXPECT_EQ(event.length, 8U) << "the head of the slot is not the program's";
  EXPECT_EQ(event.message, 1U) << "the handshake's message is not counted";
}

TEST_F(PostedOperations, AShortMessageWaitsForThePeersAnswerAboutItsRing) {
  a.session->eager_out.ask(a.session->sequencer);
  post(operation(Kind::kSend, 1));
  auto longer = operation(Kind::kSend, 2);
  longer.length = eager_most(kEagerSpan) + 1;
  post(longer);
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestMemoryRegion});
  const auto request = b.completions().front().request;
  b.serve_ring(request);
  carry(b, a);
  for (const auto& c : a.completions()) a.session->eager_out.on_answer(c);
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b), (std::vector{Op::kData, Op::kRequestToSend})) << "in their order";
}

// A peer to which nothing is sent need not have memory for it.
TEST_F(PostedOperations, TheFirstMessageAsksForTheRingIfItIsAskedForLater) {
  a.session->eager_out.ask_later();
  auto longer = operation(Kind::kSend, 1);
  longer.length = eager_most(kEagerSpan) + 1;
  post(longer);
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestToSend}) << "that goes through no ring";
  post(operation(Kind::kSend, 2));
  post(operation(Kind::kSend, 3));
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestMemoryRegion}) << "once";
  for (const auto& c : b.completions())
    if (c.kind == Completion::Kind::kRegionRequest) b.serve_ring(c.request);
  carry(b, a);
  for (const auto& c : a.completions())
    if (c.kind == Completion::Kind::kRegion) a.session->eager_out.on_answer(c);
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b), (std::vector{Op::kData, Op::kData}));
}

TEST_F(PostedOperations, AMessageThatMayNotWaitAsksForTheRingToo) {
  a.session->eager_out.ask_later();
  operations.draft() = operation(Kind::kSend, 1);
  EXPECT_EQ(operations.send_at_once(*a.session, {}, 1), -EAGAIN);
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestMemoryRegion});
}

// They wait for pages, and not for a receive of the peer's, as a Write would.
TEST_F(PostedOperations, MessagesWaitForPagesThatTheyCanLeaveFrom) {
  serve_ring(b, a);
  const auto others = a.pages.take(SendPages::kBlock);  // of other connections
  auto longer = operation(Kind::kSend, 1);
  longer.length = kEagerCell;
  post(longer);
  post(operation(Kind::kSend, 2));
  EXPECT_TRUE(carry(a, b).empty());
  EXPECT_TRUE(a.session->eager_in.session_waits());
  EXPECT_TRUE(a.pages.is_wanted());
  a.pages.give_back(others);
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b), (std::vector{Op::kData, Op::kData}));
}

// The peer says that it has a message before that has left. Its frame brings the peer whatever the
// page holds then, which other connections must not have got.
TEST_F(PostedOperations, PagesThatMayStillBeReadAreNobodyElses) {
  serve_ring(b, a);
  auto longer = operation(Kind::kSend, 1);
  longer.length = kEagerCell;
  post(longer);
  a.session->taken(1);
  for (const auto& c : a.completions()) operations.on_completion(*a.session, c);
  expect_event(STM_SEND, 1, 0);
  auto others = a.pages.take(1);
  const auto sent = take(a);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_NE(a.sources.back(), a.pages.at(others));
  a.pages.give_back(others);
  a.session->eager_out.free_held(a.session->sequencer);
  EXPECT_TRUE(a.pages.has(SendPages::kBlock)) << "nobody reads it any more";
}

// However much a peer says that it has without taking it.
TEST_F(PostedOperations, APeerThatLiesHoldsFewPages) {
  serve_ring(b, a);
  a.pages.add(a.bytes.data(), a.memory.get(), 1, false);
  auto longer = operation(Kind::kSend, 1);
  longer.ptr = a.block.data();
  longer.length = kEagerCell;
  for (std::uint32_t i = 1; i <= 32; ++i) {
    post(longer);
    a.session->taken(i);
    for (const auto& c : a.completions()) operations.on_completion(*a.session, c);
    expect_event(STM_SEND, 1, 0);
  }
  EXPECT_FALSE(a.session->eager_out.has_room(kEagerCell));
  EXPECT_FALSE(a.session->eager_out.lacks_pages(kEagerCell)) << "it goes as a Write";
  EXPECT_TRUE(a.session->eager_out.has_room(8));
  EXPECT_EQ(take(a).size(), 32U);
  post(longer);
  EXPECT_EQ(take(a).front().header.op(), Op::kData);
}

TEST_F(PostedOperations, MessagesThatGetNoPagesAreWrites) {
  serve_ring(b, a);
  static_cast<void>(a.pages.take(SendPages::kBlock));
  a.pages.answer(true);  // the link has no memory for more
  auto longer = operation(Kind::kSend, 1);
  longer.length = kEagerCell;
  post(longer);
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestToSend});
}

TEST_F(PostedOperations, AMessageLongerThanAnyRingTakesDoesNotWaitForTheAnswerAboutIt) {
  a.session->eager_out.ask(a.session->sequencer);
  auto longer = operation(Kind::kSend, 1);
  longer.length = eager_most(kEagerSpan) + 1;
  post(longer);
  EXPECT_EQ(carry(a, b), (std::vector{Op::kRequestMemoryRegion, Op::kRequestToSend}));
}

TEST_F(PostedOperations, IfThePeerRefusesItsRingShortMessagesAreWrites) {
  a.session->eager_out.ask(a.session->sequencer);
  post(operation(Kind::kSend, 1));
  carry(a, b);
  b.session->sequencer.refuse(b.completions().front().request);
  carry(b, a);
  for (const auto& c : a.completions()) a.session->eager_out.on_answer(c);
  operations.begin(*a.session);
  EXPECT_EQ(carry(a, b).back(), Op::kRequestToSend);
}

// protocol: 9.27
TEST_F(PostedOperations, AMessageThatThePeersProgramHasReceivedIsCompleteWithoutAnAnswer) {
  serve_ring(b, a);
  for (std::uint64_t i = 1; i < 32; ++i) {  // one in 32 asks
    post(operation(Kind::kSend, i, STM_LAZY));
    const auto sent = take(a);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_FALSE(sent.front().header.has(wire::flag::kSendState)) << i;
    a.session->taken(static_cast<std::uint32_t>(i));
    for (const auto& c : a.completions()) operations.on_completion(*a.session, c);
    expect_event(STM_SEND, i, 0);
  }
}

TEST_F(PostedOperations, AfterThePeerHasRevokedItsRingMessagesAreWrites) {
  serve_ring(b, a);
  ASSERT_EQ(b.session->sequencer.close_region(1), 0);
  carry(b, a);
  for (const auto& c : a.completions()) a.session->eager_out.on_revoked(c.region);
  post(operation(Kind::kSend, 1));
  EXPECT_EQ(carry(a, b).back(), Op::kRequestToSend);
}

TEST_F(PostedOperations, WhatIsLongerThanThePeersRingAllowsNeverBeginsAtOnce) {
  serve_ring(b, a);
  constexpr std::uint32_t kOneSlot = 1;
  a.session->eager_out.open(kOneSlot);
  auto sending = operation(Kind::kSend, 1);
  sending.length = eager_most(kOneSlot) + 1;
  const std::vector<std::byte> bytes(sending.length);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  operations.draft() = sending;
  EXPECT_EQ(operations.send_at_once(*a.session, {.parts = {&part, 1}}, 0), -EMSGSIZE);
  sending.length = part.iov_len = eager_most(kOneSlot);
  operations.draft() = sending;
  EXPECT_EQ(operations.send_at_once(*a.session, {.parts = {&part, 1}}, 0), 0);
}

// Those of the oldest operations in one step, others one by one.
TEST_F(PostedOperations, PutsThatCompleteTogetherHaveTheirEventsInTheirOrder) {
  open_region();
  const auto* const region = regions.find(a.session->sequencer, kKey);
  const auto is_quiet = [](std::uint64_t context) { return context % 9 == 4; };
  std::uint64_t begun = 0;
  std::uint32_t arrived = 0, told = 0;
  for (std::uint32_t round = 1; round <= 30; ++round) {
    for (; begun < arrived + kPlaces - 2; ++begun)
      post(operation(Kind::kPut, begun, is_quiet(begun) ? STM_QUIET : 0));
    take(a);
    const auto count = round % static_cast<std::uint32_t>(kPlaces - 2) + 1;
    a.session->sequencer.puts_arrived(region->region, arrived += count);
    operations.complete_puts(*a.session);
    for (; told < arrived; ++told)
      if (!is_quiet(told)) expect_event(STM_PUT, told, 0);
    EXPECT_EQ(a.event().kind, 0U);
    EXPECT_EQ(operations.size(), begun - arrived);
    EXPECT_EQ(region->operations, begun - arrived);
    EXPECT_EQ(a.memory->uses, begun - arrived);
  }
}

TEST_F(PostedOperations, APutThatWasPostedBeforeThoseThatCompleteStays) {
  open_region();
  const auto* const region = regions.find(a.session->sequencer, kKey);
  post(operation(Kind::kGet, 0));
  for (std::uint64_t context = 1; context <= 3; ++context) post(operation(Kind::kPut, context));
  take(a);
  a.session->sequencer.puts_arrived(region->region, 3);
  operations.complete_puts(*a.session);
  for (std::uint64_t context = 1; context <= 3; ++context) expect_event(STM_PUT, context, 0);
  EXPECT_EQ(operations.size(), 1U);
  EXPECT_NE(operations.find(0), nullptr);
}

TEST_F(PostedOperations, AQuietOneCompletesWithoutAnEvent) {
  open_region();
  post(operation(Kind::kPut, 1, STM_QUIET));
  EXPECT_EQ(operations.quiet_uses(*a.memory), 1U);
  EXPECT_EQ(operations.quiet(), 1U);
  EXPECT_TRUE(operations.uses(*a.memory));
  complete(1, 0);
  EXPECT_EQ(a.event().kind, 0U);
  EXPECT_FALSE(operations.uses(*a.memory));
  EXPECT_TRUE(a.queue->reserve(kPlaces - 2)) << "its place is free";
  a.queue->release(kPlaces - 2);
  post(operation(Kind::kPut, 2, STM_QUIET));
  complete(2, -ETIMEDOUT);
  expect_event(STM_PUT, 2, -ETIMEDOUT);
}

// protocol: 9.27
TEST_F(PostedOperations, ALazyOneAsksForNoAnswerOfItsOwnAndHasItsEvent) {
  open_region();
  for (const auto flags : {0U, unsigned{STM_QUIET}, unsigned{STM_LAZY}}) {
    post(operation(Kind::kPut, flags, flags));
    const auto sent = take(a);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent.front().header.has(wire::flag::kSendState), flags == 0) << flags;
  }
  EXPECT_EQ(operations.quiet_uses(*a.memory), 2U);
  EXPECT_EQ(operations.quiet(), 1U);
  complete(STM_LAZY, 0);
  expect_event(STM_PUT, STM_LAZY, 0);
}

TEST_F(PostedOperations, ALazyOneThatHasToWaitIsCountedAmongThoseWithoutAWaiter) {
  post(operation(Kind::kPut, 1, STM_LAZY));
  EXPECT_EQ(carry(a, b), std::vector{Op::kRequestMemoryRegion}) << "it has not begun";
  EXPECT_EQ(operations.quiet_uses(*a.memory), 1U) << "its memory is free in time";
}

TEST_F(PostedOperations, TheStatusSaysWhatTheProgramCanUnderstand) {
  open_region();
  post(operation(Kind::kSend, 1));
  complete(1, -ECONNREFUSED);
  expect_event(STM_SEND, 1, -EMSGSIZE);
  post(operation(Kind::kPut, 2));
  complete(2, -ECANCELED);
  expect_event(STM_PUT, 2, -EACCES);
}

TEST_F(PostedOperations, TheOldestOfAContextIsCancelled) {
  ASSERT_TRUE(add(operation(Kind::kSend, 7), 1));
  ASSERT_TRUE(add(operation(Kind::kSend, 7), 2));
  ASSERT_EQ(operations.find(8), nullptr);
  auto* const first = operations.find(7);
  ASSERT_EQ(first->posted, 1U);
  EXPECT_EQ(operations.cancel(nullptr, *first), 0);
  expect_event(STM_SEND, 7, -ECANCELED);
  operations.begin(*a.session);
  auto* const second = operations.find(7);
  ASSERT_EQ(second->posted, 2U);
  EXPECT_EQ(operations.cancel(&*a.session, *second), 0);
  EXPECT_EQ(operations.find(7), nullptr) << "it is cancelled already";
  EXPECT_EQ(operations.size(), 1U) << "but not complete";
}

}  // namespace
}  // namespace stp::managed
