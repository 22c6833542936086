// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/waiting_room.h"

#include <gtest/gtest.h>

#include <vector>

namespace stp::service {
namespace {

// `number` tells the clients of a user apart.
WaitingRoom::Guest guest(uid_t user, pid_t number, bool administrator = false) {
  return {{.pid = number, .uid = user, .groups = {}, .administrator = administrator}, {}};
}

// In the order of their turns.
std::vector<pid_t> all_of(WaitingRoom& room) {
  std::vector<pid_t> numbers;
  while (const auto next = room.next()) numbers.push_back(next->who.pid);
  return numbers;
}

TEST(WaitingRoom, UsersHaveTheirTurnOneAfterTheOther) {
  WaitingRoom room(10);
  EXPECT_TRUE(room.empty());
  EXPECT_FALSE(room.next());
  for (const pid_t number : {11, 12, 13, 14}) EXPECT_FALSE(room.enter(guest(1, number)));
  EXPECT_FALSE(room.enter(guest(3, 31)));
  EXPECT_FALSE(room.enter(guest(2, 21)));
  EXPECT_EQ(room.size(), 6U);
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{11, 21, 31, 12, 13, 14}));
  EXPECT_TRUE(room.empty());
}

TEST(WaitingRoom, WhoComesBackHasNoEarlierTurn) {
  WaitingRoom room(10);
  for (const pid_t number : {11, 12}) EXPECT_FALSE(room.enter(guest(1, number)));
  EXPECT_FALSE(room.enter(guest(2, 21)));
  EXPECT_EQ(room.next()->who.pid, 11);
  EXPECT_FALSE(room.enter(guest(1, 13)));
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{21, 12, 13}));
}

TEST(WaitingRoom, OperatorsHaveEverySecondTurn) {
  WaitingRoom room(10);
  for (const pid_t number : {11, 12, 13}) EXPECT_FALSE(room.enter(guest(1, number)));
  for (const pid_t number : {21, 22}) EXPECT_FALSE(room.enter(guest(2, number)));
  for (const pid_t number : {101, 102}) EXPECT_FALSE(room.enter(guest(0, number, true)));
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{11, 101, 21, 102, 12, 22, 13}));
}

TEST(WaitingRoom, InAFullOneTheUserWithTheMostGivesWay) {
  WaitingRoom room(3);
  for (const pid_t number : {11, 12, 13}) EXPECT_FALSE(room.enter(guest(1, number)));
  EXPECT_EQ(room.enter(guest(1, 14))->who.pid, 14);
  EXPECT_EQ(room.enter(guest(2, 21))->who.pid, 13);
  EXPECT_EQ(room.enter(guest(0, 1, true))->who.pid, 12);
  EXPECT_EQ(room.size(), 3U);
  EXPECT_EQ(all_of(room), (std::vector<pid_t>{11, 1, 21}));
}

}  // namespace
}  // namespace stp::service
