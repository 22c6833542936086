// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/state_machine.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stp::test {
namespace {

enum class Door : std::uint8_t { kShut, kOpen, kLocked, kGone };
enum class DoorEvent : std::uint8_t { kPush, kPull, kLock, kUnlock, kBurn };

//   Shut --- push ---> Open
//    | ^ <-- pull ------'
//    | '- unlock --.
//    +--- lock -> Locked
//    '--- burn -> Gone
constexpr Transition<Door, DoorEvent> kDoor[] = {
    {Door::kShut, DoorEvent::kPush, Door::kOpen},
    {Door::kShut, DoorEvent::kLock, Door::kLocked},
    {Door::kShut, DoorEvent::kBurn, Door::kGone},
    {Door::kOpen, DoorEvent::kPull, Door::kShut},
    {Door::kOpen, DoorEvent::kPush, Door::kOpen},
    {Door::kLocked, DoorEvent::kUnlock, Door::kShut},
    {Door::kLocked, DoorEvent::kBurn, Door::kGone},
};
constexpr Transition<Door, DoorEvent> kTwoWays[] = {
    {Door::kShut, DoorEvent::kPush, Door::kOpen},
    {Door::kOpen, DoorEvent::kPull, Door::kShut},
    {Door::kShut, DoorEvent::kPush, Door::kGone},
};
constexpr Transition<Door, DoorEvent> kTwoParts[] = {
    {Door::kShut, DoorEvent::kPush, Door::kOpen},
    {Door::kLocked, DoorEvent::kUnlock, Door::kShut},
};

static_assert(is_unambiguous(kDoor) && is_connected(kDoor));
static_assert(!is_unambiguous(kTwoWays) && is_connected(kTwoWays));
static_assert(is_unambiguous(kTwoParts) && !is_connected(kTwoParts));
static_assert(!std::is_copy_constructible_v<Machine<kDoor>> &&
              !std::is_copy_assignable_v<Machine<kDoor>> &&
              !std::is_move_constructible_v<Machine<kDoor>> &&
              !std::is_assignable_v<Machine<kDoor>&, Door> &&
              !std::is_constructible_v<Machine<kDoor>, Door>);
static_assert(sizeof(Machine<kDoor>) == sizeof(Door));

TEST(StateMachine, it_begins_in_the_first_state_and_goes_where_the_table_says) {
  Machine<kDoor> door;
  EXPECT_EQ(door.state(), Door::kShut);
  EXPECT_TRUE(door.advance(DoorEvent::kPush));
  EXPECT_TRUE(door == Door::kOpen);
  EXPECT_TRUE(door != Door::kShut);
  EXPECT_TRUE(door.advance(DoorEvent::kPush)) << "a row may lead back to its own state";
  EXPECT_EQ(door.state(), Door::kOpen);
  door.must(DoorEvent::kPull);
  EXPECT_EQ(door.state(), Door::kShut);
}

TEST(StateMachine, next_tells_and_changes_nothing) {
  const Machine<kDoor> door;
  EXPECT_EQ(door.next(DoorEvent::kLock), Door::kLocked);
  EXPECT_EQ(door.next(DoorEvent::kUnlock), std::nullopt);
  EXPECT_EQ(door.state(), Door::kShut);
}

TEST(StateMachine, allows_what_the_table_says_of_the_present_state) {
  Machine<kDoor> door;
  EXPECT_TRUE(door.allows(DoorEvent::kPush) && door.allows(DoorEvent::kBurn));
  EXPECT_FALSE(door.allows(DoorEvent::kPull) || door.allows(DoorEvent::kUnlock));
  door.must(DoorEvent::kBurn);
  EXPECT_FALSE(door.allows(DoorEvent::kPush)) << "no row begins in that state";
}

TEST(StateMachine, an_illegal_event_changes_nothing) {
  Machine<kDoor> door;
  EXPECT_FALSE(door.advance(DoorEvent::kUnlock));
  EXPECT_EQ(door.state(), Door::kShut);
  ASSERT_TRUE(door.advance(DoorEvent::kBurn));
  for (const auto event :
       {DoorEvent::kPush, DoorEvent::kPull, DoorEvent::kLock, DoorEvent::kUnlock, DoorEvent::kBurn})
    EXPECT_FALSE(door.advance(event));
  EXPECT_EQ(door.state(), Door::kGone);
}

TEST(StateMachine, an_event_that_must_be_legal_ends_the_process_or_changes_nothing) {
  Machine<kDoor> door;
  if constexpr (kAsserts) {
    EXPECT_DEATH(door.must(DoorEvent::kPull),
                 "state_machine_test.cpp:[0-9]+: assertion violated: the event is legal: event 1 "
                 "in state 0");
  } else {
    door.must(DoorEvent::kPull);
  }
  EXPECT_EQ(door.state(), Door::kShut);
}

TEST(StateMachine, leads_follows_the_rows) {
  EXPECT_TRUE(leads(kDoor, Door::kOpen, Door::kGone)) << "by way of Shut";
  EXPECT_TRUE(leads(kDoor, Door::kGone, Door::kGone)) << "by no event";
  EXPECT_FALSE(leads(kDoor, Door::kGone, Door::kShut));
  EXPECT_FALSE(leads(kTwoParts, Door::kShut, Door::kLocked));
}

}  // namespace
}  // namespace stp::test
