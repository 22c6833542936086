// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/session.h"

#include "libst/managed/operation_list.h"
#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

using Sessions = TwoSessions;

TEST(SessionMessages, ThoseOfTheProgramAreCountedFromOne) {
  EXPECT_EQ(program_message(0), 0U) << "none";
  EXPECT_EQ(program_message(1), 0U) << "the handshake's";
  EXPECT_EQ(program_message(2), 1U);
  EXPECT_EQ(program_message(0xffffffff), 0xfffffffeU);
}

TEST(SessionContexts, OfOneKindAreNoneOfAnother) {
  constexpr auto operation = OperationList::kMark, message = context::kMessageMark,
                 key = context::kKeyMark;
  EXPECT_EQ((2 * operation - 1) & (message | key), 0U);
  EXPECT_EQ((message | 0xffffffff) & (operation | key), 0U);
  EXPECT_EQ((key | 0xffffffff) & (operation | message), 0U);
  EXPECT_LT(context::kHelloIn, context::kFirstReceive);
  EXPECT_NE(context::kHelloIn, context::kHelloOut);
}

TEST_F(Sessions, WithoutMemoryAnEmptyMessageLandsInTheLibrarysOwn) {
  const auto& session = *a.session;
  const auto hello = session.hello_landing();
  EXPECT_EQ(hello.at, a.own->at(a.block.data() + kHelloSize));
  EXPECT_EQ(hello.length, kHelloSize);
  PostedReceive receive;
  EXPECT_EQ(session.landing(receive).at, hello.at);
  receive.memory = MemoryUse(a.memory);
  receive.ptr = a.bytes.data() + 10;
  receive.length = 20;
  EXPECT_EQ(session.landing(receive).at, a.memory->at(a.bytes.data() + 10));
  EXPECT_EQ(session.landing(receive).length, 20U);
}

class RingOfASession : public TwoSessions {
 protected:
  void SetUp() override { served = serve_ring(a, b); }
  // The peer has put a message into the first slot of a's ring.
  void put(const EagerHead& head) { encode(head, a.session->staging.eager_in(0)); }
  bool arrived(std::uint32_t request, std::uint64_t length) {
    Completion c{};
    c.request = request;
    c.length = length;
    return a.session->on_arrived(c);
  }
  std::uint32_t served = 0;
};

TEST_F(RingOfASession, BytesInOtherRegionsAreNoMessages) {
  put({.message = a.session->sequencer.expected_message(), .length = 10});
  EXPECT_TRUE(arrived(served + 1, 3)) << "whatever they are";
  EXPECT_EQ(a.session->arrived(), nullptr);
  ASSERT_TRUE(arrived(served, kEagerHead + 10));
  ASSERT_NE(a.session->arrived(), nullptr);
  EXPECT_EQ(a.session->arrived()->head.length, 10U);
}

TEST_F(RingOfASession, AMessageThatIsNotTheNextWaits) {
  put({.message = a.session->sequencer.expected_message() + 1, .length = 10});
  ASSERT_TRUE(arrived(served, kEagerHead + 10));
  EXPECT_EQ(a.session->arrived(), nullptr);
}

TEST_F(RingOfASession, WhatBreaksItsRulesIsABreach) {
  const auto message = a.session->sequencer.expected_message();
  put({.message = message, .length = 11});
  EXPECT_FALSE(arrived(served, kEagerHead + 10)) << "longer than what arrived";
  EXPECT_FALSE(arrived(served, kEagerHead - 1)) << "not even a header";
  EXPECT_EQ(a.session->arrived(), nullptr);
}

TEST_F(RingOfASession, AMessageFreesTheSlotsThatThePeerHasTaken) {
  auto& b_out = b.session->eager_out;
  for (std::uint32_t i = 0; i < kEagerSlots; ++i) {
    const auto slot = b_out.use(10);
    b_out.delivered(slot, 10);
  }
  ASSERT_FALSE(b_out.has_room(10));
  serve_ring(b, a);
  encode({.message = b.session->sequencer.expected_message(), .length = 10, .taken = 3},
         b.session->staging.eager_in(0));
  Completion c{};
  c.length = kEagerHead + 10;
  for (c.request = 1; !b.session->eager_in.is_served_as(c.request); ++c.request)
    ASSERT_LT(c.request, 100U);
  ASSERT_TRUE(b.session->on_arrived(c));
  EXPECT_TRUE(b_out.has_room(10));
}

}  // namespace
}  // namespace stp::managed
