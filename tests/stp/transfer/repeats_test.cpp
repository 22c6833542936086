// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/repeats.h"

#include "stp/transfer/clock.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

using Answerer = Repeats::Answerer;
using Next = Repeats::Next;

// The first repeat is due after four round trips of 10 ms, the first guess.
constexpr Time kFirst = 40 * kMillisecond;

class RepeatsTest : public Parts {
 protected:
  Awaited request() {
    Awaited awaited(Alarm::kAsksOut);
    repeats.start(awaited, kUserPatience);
    outbox.add(wire::to_header(wire::NoOperation{}));
    awaited.number = outbox.last_number();
    return awaited;
  }
  Next round(Awaited& awaited, Answerer who = Answerer::kUser) {
    clock.stop();
    repeats.begin_round();
    const auto what = repeats.next(awaited, who);
    repeats.end_round();
    return what;
  }
};

TEST_F(RepeatsTest, wait_for_the_first_interval) {
  auto awaited = request();
  node_takes();
  EXPECT_EQ(clock.deadline(), clock.now() + kFirst);
  pass(kFirst - 1);
  EXPECT_EQ(round(awaited), Next::kWait);
  EXPECT_FALSE(next()) << "nothing is in doubt yet";
  EXPECT_TRUE(repeats.idle());
}

// protocol: 10.21
TEST_F(RepeatsTest, ask_first_whether_the_peer_has_seen_the_request) {
  auto awaited = request();
  node_takes();
  pass(kFirst);
  EXPECT_EQ(round(awaited), Next::kWait);
  EXPECT_FALSE(repeats.idle());
  ASSERT_TRUE(answer_question());
  EXPECT_EQ(clock.deadline(), clock.now()) << "what was in doubt is decided now";
  EXPECT_EQ(round(awaited), Next::kWait) << "the peer has time to answer what it has seen";
  pass(kSecond);
  EXPECT_EQ(round(awaited), Next::kSend);
}

// protocol: 10.21
TEST_F(RepeatsTest, ask_one_question_for_all_that_is_in_doubt) {
  auto first = request(), second = request();
  node_takes();
  pass(kFirst);
  repeats.begin_round();
  repeats.next(first, Answerer::kUser);
  repeats.next(second, Answerer::kNode);
  repeats.end_round();
  EXPECT_EQ(node_takes(), std::vector<Op>{Op::kRequestState});
}

TEST_F(RepeatsTest, of_a_question_need_no_other_question) {
  auto awaited = request();
  node_takes();
  pass(kFirst);
  EXPECT_EQ(round(awaited, Answerer::kQuestion), Next::kSend);
  EXPECT_EQ(clock.deadline(), clock.now() + 2 * kFirst) << "the interval doubles";
}

TEST_F(RepeatsTest, wait_while_the_node_has_not_taken_the_request) {
  auto awaited = request();
  next();
  pass(kFirst);
  EXPECT_EQ(round(awaited, Answerer::kQuestion), Next::kWait);
  taken();
  pass(kFirst);
  EXPECT_EQ(round(awaited, Answerer::kQuestion), Next::kSend);
}

TEST_F(RepeatsTest, give_up_after_enough_tries_and_time) {
  auto awaited = request();
  node_takes();
  const auto begun = clock.now();
  auto what = Next::kWait;
  while (what != Next::kGiveUp && clock.now() < begun + 100 * kSecond) {
    pass(clock.deadline() - clock.now());
    what = round(awaited, Answerer::kQuestion);
  }
  EXPECT_EQ(what, Next::kGiveUp);
  EXPECT_GE(clock.now(), begun + kUserPatience);
  EXPECT_LE(clock.now(), begun + kUserPatience + kSecond);
}

TEST_F(RepeatsTest, come_sooner_on_a_fast_connection) {
  auto awaited = request();
  node_takes();
  pass(100 * kMicrosecond);
  repeats.measure(awaited);
  clock.stop();
  request();
  EXPECT_EQ(clock.deadline(), clock.now() + kMillisecond) << "but never sooner than this";
}

TEST_F(RepeatsTest, ignore_an_answer_to_no_question) {
  clock.stop();
  repeats.on_slots({.r_slots = kSlots, .sync = 77});
  EXPECT_EQ(clock.deadline(), kNever);
}

}  // namespace
}  // namespace stp::test
