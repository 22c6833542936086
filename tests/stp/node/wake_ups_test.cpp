// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/wake_ups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/stp/node/mechanisms.h"
#include "tests/stp/node/nops_fixture.h"
#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

class WakeUpsTest : public ::testing::Test {
 protected:
  Vcs vcs;
  Vc& vc = vcs.make(1);
  UserChannel user = vcs.user();
  RingQueue<Event> events;
  WakeUps wake_ups{events};

  // The number of events of that kind since the last call.
  std::size_t count(Event::Kind kind) {
    const auto before = events.size();
    erase_if(events, [&](const Event& e) { return e.kind == kind; });
    return before - events.size();
  }
  std::size_t woken() { return count(Event::Kind::kWake); }
  std::size_t news() { return count(Event::Kind::kNews); }
};

TEST_F(WakeUpsTest, who_is_awake_is_not_woken) {
  wake_ups.touch(vc);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 0U);
}

// protocol: 6.17
TEST_F(WakeUpsTest, a_sleeper_is_woken_at_once_for_what_is_urgent_and_once_for_all_else) {
  user.begin_sleep();
  wake_ups.touch(vc, true);
  wake_ups.touch(vc, true);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 1U);
  user.end_sleep();
  user.begin_sleep();
  wake_ups.touch(vc, false);
  wake_ups.flush(1'000);
  EXPECT_EQ(woken(), 0U);
  EXPECT_EQ(wake_ups.deadline(), 1'000 + WakeUps::kDelay);
  wake_ups.touch(vc, false);
  wake_ups.flush(1'500);  // later ones do not move the deadline
  EXPECT_EQ(woken(), 0U);
  EXPECT_EQ(wake_ups.deadline(), 1'000 + WakeUps::kDelay);
  wake_ups.flush(wake_ups.deadline());
  EXPECT_EQ(woken(), 1U);
  EXPECT_EQ(wake_ups.deadline(), kNever);
}

TEST_F(WakeUpsTest, a_turn_that_brings_nothing_wakes_who_could_wait) {
  user.begin_sleep();
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 0U);
  wake_ups.wake(true, 200);
  EXPECT_EQ(woken(), 1U);
}

TEST_F(WakeUpsTest, who_could_wait_is_woken_at_once_when_something_urgent_follows) {
  user.begin_sleep();
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  wake_ups.touch(vc, true);
  wake_ups.flush(200);
  EXPECT_EQ(woken(), 1U);
}

TEST_F(WakeUpsTest, who_gathers_is_told_of_news_at_once_but_not_of_room) {
  user.gather();
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  EXPECT_EQ(news(), 1U);
  wake_ups.touch_room(vc);
  wake_ups.flush(200);
  EXPECT_EQ(news(), 0U);
  wake_ups.touch(vc, false);  // it is drowsy by now
  wake_ups.flush(300);
  EXPECT_EQ(news(), 1U);
}

TEST_F(WakeUpsTest, room_wakes_who_sleeps) {
  user.begin_sleep();
  wake_ups.touch_room(vc);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 1U);
}

TEST_F(WakeUpsTest, who_is_over_is_waited_for_no_more) {
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  const auto deadline = wake_ups.deadline();
  EXPECT_NE(deadline, kNever);
  vcs.table.take(vc).reset();
  wake_ups.flush(deadline - 1);
  EXPECT_EQ(wake_ups.deadline(), kNever);
  EXPECT_TRUE(events.empty());
}

// The same with two Nodes and their users.
class Sleepers : public Nops {};

// protocol: 6.17
TEST_F(Sleepers, a_sleeping_user_is_woken_at_once_by_interrupt) {
  connect();
  b.events.clear();
  put(a, ca, nop(1));
  settle();
  EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "nobody sleeps";
  const auto seen_word = cb.user.begin_sleep();
  auto urgent = nop(2);
  urgent.header.op_flags |= wire::flag::kInterrupt;
  put(a, ca, urgent);
  settle();
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
  EXPECT_NE(cb.user.wake_word()->load(), seen_word);
  cb.user.end_sleep();
}

// protocol: 6.17
TEST_F(Sleepers, without_interrupt_a_sleeping_user_is_woken_once_and_within_50_microseconds) {
  connect();
  cb.user.begin_sleep();
  b.node.idle();
  b.events.clear();
  for (std::uint32_t i = 0; i < 3; ++i) put(a, ca, nop(i));
  settle();
  EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "more may follow";
  EXPECT_LE(b.node.next_deadline(), now + 50 * kMicrosecond);
  pass(50 * kMicrosecond);
  EXPECT_EQ(std::count_if(b.events.begin(), b.events.end(),
                          [](auto& e) { return e.kind == Event::Kind::kWake; }),
            1);
  cb.user.end_sleep();
}

// protocol: 6.17
TEST_F(Sleepers, a_sleeping_user_is_woken_as_soon_as_nothing_more_arrives) {
  connect();
  cb.user.begin_sleep();
  b.node.idle();
  b.events.clear();
  put(a, ca, nop(1));
  settle();
  b.node.idle();
  settle();  // fetches the events
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
  EXPECT_GT(b.node.next_deadline(), now + 50 * kMicrosecond) << "nobody is left to wake";
  cb.user.end_sleep();
}

// A user that was notified waits for its wake-up. Only a gathering user is notified of more before.
// protocol: 6.17
TEST_F(Sleepers, a_user_that_gathers_is_told_of_each_header_at_once) {
  connect();
  put(a, ca, nop(1));
  settle();  // from here on it is to be woken
  b.events.clear();
  put(a, ca, nop(2));
  settle();
  EXPECT_FALSE(has_event(b, Event::Kind::kNews)) << "it looks at this channel itself";
  cb.user.gather();
  for (std::uint32_t i = 3; i < 5; ++i) {
    b.events.clear();
    put(a, ca, nop(i));
    settle();
    EXPECT_TRUE(has_event(b, Event::Kind::kNews)) << i;
    EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "that can wait";
  }
  pass(50 * kMicrosecond);
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
}

// Only sent frames make room here: no other event would wake the user later.
TEST_F(Sleepers, a_user_that_sleeps_on_a_full_queue_learns_of_room_at_once) {
  connect();
  put(a, ca, nop(1));
  settle();
  pass(kMillisecond);
  put(a, ca, nop(2));
  ca.user.begin_sleep();
  a.events.clear();
  settle();
  EXPECT_TRUE(has_event(a, Event::Kind::kWake));
  ca.user.end_sleep();
}

TEST_F(Sleepers, a_user_that_was_about_to_sleep_learns_of_room_a_little_later) {
  connect();
  put(a, ca, nop(1));
  settle();
  ca.user.begin_sleep();
  a.events.clear();
  pass(50 * kMicrosecond);
  EXPECT_TRUE(has_event(a, Event::Kind::kWake));
  ca.user.end_sleep();
}

TEST_F(Sleepers, a_user_that_sleeps_learns_of_the_end_at_once) {
  connect();
  cb.user.begin_sleep();
  b.node.idle();
  b.events.clear();
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  settle();
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
  EXPECT_TRUE(has_event(b, Event::Kind::kVcOver));
  cb.user.end_sleep();
}

TEST(Deliver, the_user_gets_all_that_belongs_to_the_header_and_is_told) {
  Mechanisms with;
  auto& vc = with.open(1);
  auto user = with.vcs.user();
  user.gather();
  const std::array option{std::byte{1}, std::byte{2}};
  const auto header = wire::to_header(wire::NoOperation{}, wire::flag::kInterrupt);
  ASSERT_TRUE(
      deliver(vc, with.wake_ups, vc.peer_mac, header, option, NodeChannel::Place::kSlot, 99));
  with.wake_ups.flush(100);
  EXPECT_EQ(with.events(Event::Kind::kNews), 1U);
  ReceivedEntry got;
  ASSERT_TRUE(user.receive(got));
  EXPECT_EQ(got.header.op_flags, header.op_flags);
  EXPECT_EQ(got.source_mac, vc.peer_mac.to_u64());
  EXPECT_EQ(got.length, 99U);
  ASSERT_EQ(got.payload_length, 2U);
  EXPECT_EQ(std::memcmp(got.payload, option.data(), 2), 0);
}

TEST(Deliver, a_user_without_a_free_slot_is_woken_at_once) {
  Mechanisms with;
  auto& vc = with.open(1);
  auto user = with.vcs.user();
  const auto header = wire::to_header(wire::NoOperation{});
  const auto arrives = [&] {
    return deliver(vc, with.wake_ups, vc.peer_mac, header, {}, NodeChannel::Place::kSlot);
  };
  user.begin_sleep();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(arrives());
  with.wake_ups.flush(100);
  EXPECT_EQ(with.events(Event::Kind::kWake), 0U) << "that can wait";
  EXPECT_FALSE(arrives());
  with.wake_ups.flush(100);
  EXPECT_EQ(with.events(Event::Kind::kWake), 1U);
}

}  // namespace
}  // namespace stp::test
