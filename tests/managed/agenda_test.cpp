// SPDX-License-Identifier: BSD-3-Clause
// Counts the connections that a turn visits: its cost does not grow with the number of idle ones.
#include "libst/managed/agenda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace stp::managed {
namespace {

constexpr std::size_t kMany = 10'000;
constexpr Time kNow = kSecond;

class Agendas : public ::testing::Test {
 protected:
  void SetUp() override {
    // An Agenda does not look into connections, so any address will do.
    for (std::uint32_t i = 0; i < kMany; ++i)
      agenda.add(entries[i], reinterpret_cast<Connection&>(entries[i]), i);
    EXPECT_EQ(turn(), kMany) << "all are new";
    EXPECT_EQ(turn(), 0U);
  }
  // Returns how many connections the turn visits.
  std::size_t turn(Time now = kNow) {
    agenda.gather(*news, now);
    visited.assign(agenda.turn().begin(), agenda.turn().end());
    agenda.end_turn();
    return visited.size();
  }

  std::unique_ptr<service::Doorbells> news = std::make_unique<service::Doorbells>();
  std::vector<Agenda::Entry> entries = std::vector<Agenda::Entry>(kMany);
  Agenda agenda;
  std::vector<Agenda::Entry*> visited;
};

TEST_F(Agendas, ThoseWithNewsAreVisitedOnce) {
  for (const auto channel : {9'999U, 3U, 3U}) news->ring(channel);
  ASSERT_EQ(turn(), 2U);
  EXPECT_EQ(visited, (std::vector{&entries[3], &entries[9'999]}));
  EXPECT_EQ(turn(), 0U);
}

TEST_F(Agendas, ATimerThatIsDueBringsAVisitAndOneThatIsNotDoesNot) {
  agenda.expect(entries[7], kNow + kMillisecond);
  EXPECT_EQ(agenda.next_deadline(), kNow + kMillisecond);
  EXPECT_EQ(turn(), 0U);
  EXPECT_EQ(turn(kNow + kMillisecond), 1U);
  EXPECT_EQ(agenda.next_deadline(), kNever);
}

TEST_F(Agendas, ADeadlineThatHasMovedToLaterBringsNoVisitBeforeThat) {
  agenda.expect(entries[7], kNow + kMillisecond);
  agenda.expect(entries[7], kNow + kSecond);
  agenda.expect(entries[8], kNow + kMillisecond);
  agenda.expect(entries[8], kNever);
  EXPECT_EQ(turn(kNow + kMillisecond), 0U);
  EXPECT_EQ(agenda.next_deadline(), kNow + kSecond);
  agenda.expect(entries[7], kNow + 2 * kMillisecond);  // and back
  EXPECT_EQ(turn(kNow + 2 * kMillisecond), 1U);
  EXPECT_EQ(turn(kNow + kSecond), 0U);
  EXPECT_EQ(agenda.next_deadline(), kNever);
}

TEST_F(Agendas, WhoeverAsksIsVisitedAgainAndWhoeverWaitsWhenItIsCalled) {
  agenda.again(entries[1]);
  agenda.park(entries[2]);
  EXPECT_EQ(turn(), 1U);
  EXPECT_TRUE(agenda.has_parked());
  agenda.call_parked();
  EXPECT_FALSE(agenda.has_parked());
  EXPECT_EQ(turn(), 1U);
  EXPECT_EQ(visited.front(), &entries[2]);
}

// The link reuses the number of a channel as soon as it is closed, even before its owner knows.
TEST_F(Agendas, WhoseChannelIsGivenToAnotherIsVisitedAsWell) {
  news->ring(5);  // it is closed
  Agenda::Entry successor;
  agenda.add(successor, reinterpret_cast<Connection&>(successor), 5);
  ASSERT_EQ(turn(), 2U);
  EXPECT_NE(std::find(visited.begin(), visited.end(), &entries[5]), visited.end());
  EXPECT_NE(std::find(visited.begin(), visited.end(), &successor), visited.end());
  agenda.remove(successor);
}

// The same if the new owner is in another domain.
TEST_F(Agendas, NewsThatAnotherDomainTookForItsOwnArePassedOn) {
  Agenda other;
  Agenda::Entry successor;
  other.add(successor, reinterpret_cast<Connection&>(successor), 5);
  other.gather(*news, kNow);
  other.end_turn();
  news->ring(5);
  EXPECT_EQ(turn(), 1U) << "the successor's";
  other.gather(*news, kNow);
  EXPECT_TRUE(other.turn().empty());
  agenda.disown(entries[5], *news);
  EXPECT_EQ(turn(), 0U);
  other.gather(*news, kNow);
  EXPECT_EQ(other.turn(), std::vector{&successor});
  other.end_turn();
  other.remove(successor);
}

TEST_F(Agendas, OneThatIsGoneIsVisitedNoMoreAndItsChannelIsItsSuccessors) {
  agenda.again(entries[5]);
  agenda.expect(entries[5], kNow);
  Agenda::Entry successor;
  agenda.add(successor, reinterpret_cast<Connection&>(successor), 5);
  agenda.remove(entries[5]);
  EXPECT_FALSE(Agenda::knows(entries[5]));
  EXPECT_EQ(turn(), 1U);
  news->ring(5);
  EXPECT_EQ(turn(), 1U);
  EXPECT_EQ(visited.front(), &successor);
}

}  // namespace
}  // namespace stp::managed
