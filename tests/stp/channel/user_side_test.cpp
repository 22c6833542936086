// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/user_side.h"

#include "tests/stp/channel/rings_fixture.h"

namespace stp::test {
namespace {

using UserSide = Rings;

TEST_F(UserSide, as_many_requests_wait_as_there_are_credits) {
  EXPECT_FALSE(UserChannel());
  EXPECT_TRUE(user);
  for (std::uint32_t i = 0; i < kGeometry.credits; ++i) {
    EXPECT_TRUE(user.writable());
    EXPECT_TRUE(send(i));
  }
  EXPECT_FALSE(user.writable());
  EXPECT_FALSE(send(4));
  EXPECT_EQ(user.sent(), 4U);
  take_one();
  EXPECT_EQ(user.taken(), 1U);
  EXPECT_TRUE(send(4));
  EXPECT_FALSE(user.writable());
}

TEST_F(UserSide, a_request_may_be_written_in_place) {
  user.next() = {};
  user.next().length = 9;
  user.send_next();
  SendEntry entry;
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(entry.length, 9U);
}

TEST_F(UserSide, a_request_is_done_when_the_node_says_so_not_when_it_is_taken) {
  ASSERT_TRUE(send(1));
  ASSERT_TRUE(send(2));
  take_one();
  EXPECT_TRUE(user.done(0));
  EXPECT_FALSE(user.done(1));
  node.complete(1);
  EXPECT_TRUE(user.done(1));
  EXPECT_FALSE(user.done(user.sent()));
}

TEST_F(UserSide, other_threads_see_that_there_is_something_to_read) {
  EXPECT_FALSE(user.readable());
  EXPECT_FALSE(user.waiting());
  ASSERT_TRUE(deliver(1));
  EXPECT_TRUE(user.readable());
  EXPECT_TRUE(user.waiting());
  ReceivedEntry entry;
  ASSERT_TRUE(user.receive(entry));
  EXPECT_FALSE(user.readable());
  EXPECT_FALSE(user.waiting());
  EXPECT_FALSE(user.receive(entry));
}

TEST_F(UserSide, learns_the_state_with_its_error) {
  EXPECT_EQ(user.state(), ChannelState::kConnecting);
  node.set_state(ChannelState::kOpen);
  EXPECT_EQ(user.state(), ChannelState::kOpen);
  EXPECT_EQ(user.error(), 0);
  node.set_state(ChannelState::kFailed, -110);
  EXPECT_EQ(user.state(), ChannelState::kFailed);
  EXPECT_EQ(user.error(), -110);
}

TEST_F(UserSide, one_that_gathers_is_woken_without_sleeping_here) {
  EXPECT_FALSE(node.gathered());
  user.gather();
  EXPECT_TRUE(node.gathered());
  EXPECT_TRUE(node.needs_wake());
  user.leave();
  EXPECT_FALSE(node.gathered());
}

}  // namespace
}  // namespace stp::test
