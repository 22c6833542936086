// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/send_bounds.h"

#include <gtest/gtest.h>

#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

constexpr std::size_t kFirstOfSender = SentWindow::kTimes * 16'384;  // bytes

// A sends Blocks that B has asked for, however much that is.
class SendBoundsTest : public Writing {
 protected:
  static constexpr std::size_t kBlock = std::size_t{1} << kBlocksize;
  explicit SendBoundsTest(bool routed = true)
      : Writing(NodeConfig{
            .mac = {}, .max_stu = kBufsize, .vlan = {}, .attach_from = 512, .routed = routed}) {}

  static bool is(const Frame& frame, Op op) { return parsed(frame).header.op() == op; }
  void lose_answers() {
    wire = [](const Frame& frame, bool from_a) {
      return !from_a && is(frame, Op::kRequestStateResponse) ? 0U : 1U;
    };
  }
  // Queues the same Block `times` times.
  void send(unsigned times) {
    const auto permission = grant(kBlock);
    seen.clear();
    for (; times > 0; --times) put(a, ca, data(permission, kBlock));
    settle();
  }
  std::size_t count_of(Op op) {
    return static_cast<std::size_t>(
        std::count_if(seen.begin(), seen.end(), [op](auto& frame) { return is(frame, op); }));
  }
  std::size_t bytes_sent() {
    std::size_t bytes = 0;
    for (const auto& frame : seen)
      if (is(frame, Op::kData)) bytes += parsed(frame).stu.size();
    return bytes;
  }
};

// protocol: 13.16
TEST_F(SendBoundsTest, what_is_proven_to_arrive_makes_room_for_more) {
  send(4);
  EXPECT_EQ(bytes_sent(), 4 * kBlock);
  const auto asks = count_of(Op::kRequestState);
  EXPECT_GE(asks, 4 * kBlock / (kFirstOfSender / 2));
  EXPECT_LE(asks, 4 * kBlock / (kFirstOfSender / 4));
  EXPECT_EQ(count_of(Op::kRequestStateResponse), asks);
  EXPECT_FALSE(get(ca)) << "the answers are not for the user";
}

// protocol: 13.16
TEST_F(SendBoundsTest, no_more_than_the_window_leaves_before_it_is_proven_to_have_arrived) {
  lose_answers();
  send(4);
  EXPECT_LE(bytes_sent(), kFirstOfSender);
  EXPECT_GT(bytes_sent(), kFirstOfSender - 2 * kStu - 2048) << "with the headers of each STU";
  pass(kSecond / 2);
  EXPECT_LE(bytes_sent(), kFirstOfSender);
  wire = {};
  pass(kSecond);
  EXPECT_EQ(bytes_sent(), 4 * kBlock) << "the question was asked again";
}

// protocol: 13.16
TEST_F(SendBoundsTest, questions_without_answer_are_asked_once_a_second) {
  lose_answers();
  send(4);
  seen.clear();
  pass(10 * kSecond);
  EXPECT_GE(count_of(Op::kRequestState), 9U);
  EXPECT_LE(count_of(Op::kRequestState), 25U) << "those of 5.23 are among them";
  EXPECT_EQ(bytes_sent(), 0U);
}

// Who asked may be gone. Another connection with that station waits.
TEST_F(SendBoundsTest, the_end_of_a_connection_holds_up_no_other) {
  lose_answers();
  send(4);
  const auto first = ca.id;
  auto memory = std::move(ca.memory);
  b.stock(listener);
  begin_connect();
  settle();
  accept();
  put(a, ca, control(Op::kNoOperation));
  settle();
  ASSERT_FALSE(get(cb)) << "there is no room on the path";
  ASSERT_EQ(a.node.close(first, true, now), 0);
  settle();
  EXPECT_EQ(a.node.vc_count(), 1U);
  wire = {};
  pass(2 * kSecond);
  EXPECT_TRUE(get(cb));
}

// Who asked is gone, and so are many that waited. It takes too long to look at all of them for one
// who may ask again, so what was sent counts as arrived.
TEST_F(SendBoundsTest, many_that_waited_and_are_gone_hold_up_no_other) {
  constexpr unsigned kGone = 40;
  struct Pair {
    Connection a, b;
  };
  const auto nothing = control(Op::kNoOperation);
  Pair first{std::move(ca), std::move(cb)};
  std::vector<Pair> others;
  for (unsigned i = 0; i <= kGone; ++i) {
    b.stock(listener);
    begin_connect();
    settle();
    accept();
    put(a, ca, nothing);
    settle();
    ASSERT_TRUE(get(cb));
    others.push_back({std::move(ca), std::move(cb)});
  }
  ca = std::move(first.a);
  cb = std::move(first.b);
  lose_answers();
  send(4);
  for (auto& other : others) put(a, other.a, nothing);
  settle();
  auto last = std::move(others.back());
  others.pop_back();
  ASSERT_FALSE(get(last.b)) << "there is no room on the path";
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  for (const auto& other : others) ASSERT_EQ(a.node.close(other.a.id, true, now), 0);
  pass(2 * kSecond);
  EXPECT_TRUE(get(last.b)) << "no question of it has been answered";
}

class SendBoundsOff : public SendBoundsTest {
 protected:
  SendBoundsOff() : SendBoundsTest(false) {}
};

TEST_F(SendBoundsOff, nothing_is_held_back_without_control_of_congestion) {
  lose_answers();
  send(4);
  EXPECT_EQ(bytes_sent(), 4 * kBlock);
  EXPECT_EQ(count_of(Op::kRequestState), 0U);
}

}  // namespace
}  // namespace stp::test
