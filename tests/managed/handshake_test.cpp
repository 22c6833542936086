// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/handshake.h"

#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

// A has asked B. The fixture's messages begin after those of the handshake, which does not matter.
class Handshakes : public TwoSessions {
 protected:
  static Hello hello(Hello::Kind kind, std::size_t length) {
    return {kind, std::vector<std::byte>(length, std::byte{7})};
  }
  // What `from` says arrives at `to`.
  const Hello* hear(Handshake& by, Side& from, Side& to) {
    carry(from, to);
    bool begun = false;
    EXPECT_TRUE(by.receive(*to.session, begun));
    EXPECT_TRUE(begun);
    EXPECT_TRUE(by.receive(*to.session, begun));
    EXPECT_FALSE(begun) << "it is received once";
    carry(to, from);
    std::memcpy(to.session->staging.hello_in(), from.session->staging.hello_out(), kHelloSize);
    carry(from, to);
    const auto completions = to.completions();
    EXPECT_EQ(completions.size(), 1U);
    EXPECT_EQ(completions[0].context, context::kHelloIn);
    EXPECT_EQ(completions[0].status, 0);
    return by.on_received(*to.session, completions[0]);
  }

  Handshake asks, answers;
};

// protocol: 9.30
TEST_F(Handshakes, ARequestIsAnswered) {
  asks.connect(hello(Hello::Kind::kRequest, 100), now + kSecond);
  asks.ask(*a.session, now);
  const auto* const request = hear(answers, a, b);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->kind, Hello::Kind::kRequest);
  EXPECT_EQ(answers.private_data().size(), 100U);
  answers.answer(*b.session, hello(Hello::Kind::kReject, 50), now);
  const auto* const answer = hear(asks, b, a);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->kind, Hello::Kind::kReject);
  EXPECT_EQ(asks.private_data(), hello(Hello::Kind::kReject, 50).private_data);
}

TEST_F(Handshakes, EachStepHasADeadline) {
  EXPECT_EQ(asks.deadline(), kNever);
  asks.connect({}, now + 5);
  EXPECT_EQ(asks.deadline(), now + 5);
  answers.expect(now);
  EXPECT_EQ(answers.deadline(), now + Handshake::kRequestPatience);
  answers.answer(*b.session, hello(Hello::Kind::kAccept, 0), now);
  EXPECT_EQ(answers.deadline(), now + Handshake::kDecisionPatience);
  answers.stop_waiting();
  EXPECT_EQ(answers.deadline(), kNever);
}

TEST_F(Handshakes, AMessageThatIsNoHelloIsRefused) {
  bool begun = false;
  ASSERT_EQ(a.session->sequencer.write(1, {}, kHelloSize + 1), 0);
  carry(a, b);
  EXPECT_FALSE(answers.receive(*b.session, begun)) << "too long";
  Completion c{};
  c.length = kHelloHead;
  std::memset(b.session->staging.hello_in(), 1, kHelloHead);
  EXPECT_EQ(answers.on_received(*b.session, c), nullptr);
  EXPECT_TRUE(answers.private_data().empty());
}

}  // namespace
}  // namespace stp::managed
