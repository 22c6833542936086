// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>

#include "libst/client/wait.h"
#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "tests/managed/no_link.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

constexpr std::size_t kMany = 10'000;
constexpr Time kNow = kSecond;

// Counts the connections that a turn visits: its cost does not grow with the number of idle ones.
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

  std::unique_ptr<ipc::Doorbells> news = std::make_unique<ipc::Doorbells>();
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

// The next address of the peer has a channel of its own.
TEST_F(Agendas, AConnectionThatChangesItsChannelKeepsItsTimer) {
  agenda.expect(entries[7], kNow + kMillisecond);
  agenda.disown(entries[7], *news);
  agenda.take_channel(entries[7], kMany);
  EXPECT_EQ(agenda.due(entries[7]), kNow + kMillisecond);
  EXPECT_EQ(turn(), 1U) << "it is new at that channel";
  agenda.remove(entries[7]);
  EXPECT_EQ(turn(kNow + kMillisecond), 0U) << "it has gone";
}

// The timer of one that has gone is given to the next.
TEST_F(Agendas, ANewConnectionHasNoDeadlineOfOneThatHasGone) {
  agenda.expect(entries[7], kNow + kMillisecond);
  EXPECT_EQ(agenda.due(entries[7]), kNow + kMillisecond);
  agenda.remove(entries[7]);
  EXPECT_EQ(agenda.due(entries[7]), kNever);
  Agenda::Entry successor;
  agenda.add(successor, reinterpret_cast<Connection&>(successor), 7);
  EXPECT_EQ(agenda.due(successor), kNever);
  EXPECT_EQ(turn(), 1U) << "it is new";
  EXPECT_EQ(turn(kNow + kMillisecond), 0U);
  agenda.expect(successor, kNow + kSecond);
  EXPECT_EQ(turn(kNow + kSecond), 1U);
  EXPECT_EQ(visited.front(), &successor);
  agenda.remove(successor);
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

class BackgroundThread : public testing::Test {
 protected:
  void start() {
    background.start([this] {
      std::lock_guard const guard(mutex);
      ++turns;
      turned.notify_all();
      return kNever;
    });
  }
  void TearDown() override { background.stop(); }
  // Whether that many turns have been taken within `patience`.
  bool reached(unsigned wanted, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock guard(mutex);
    return turned.wait_for(guard, patience, [&] { return turns >= wanted; });
  }
  void ring() {
    ++link.page().events;
    client::wake_all(link.page().events);
  }
  NoLink link;
  std::mutex mutex;
  std::condition_variable turned;
  unsigned turns = 0;
  Background background{link};
};

TEST_F(BackgroundThread, TakesATurnWhenTheLinkHasNews) {
  start();
  ASSERT_TRUE(reached(1));
  for (unsigned wanted = 2; wanted < 10; ++wanted) {
    ring();
    ASSERT_TRUE(reached(wanted));
  }
}

TEST_F(BackgroundThread, StaysAwayWhileTheProgramWaits) {
  std::optional<Background::Visit> visit(background);
  start();
  ring();
  EXPECT_FALSE(reached(1, std::chrono::milliseconds(50)));
  visit.reset();
  EXPECT_TRUE(reached(1));
}

TEST_F(BackgroundThread, ComesBackAfterTheLastCall) {
  start();
  ASSERT_TRUE(reached(1));
  background.visited();
  ring();
  EXPECT_TRUE(reached(2));
}

TEST_F(BackgroundThread, EndsWhileItStaysAway) {
  Background::Visit const visit(background);
  start();
  background.stop();
  EXPECT_EQ(turns, 0U);
}

// Turns of a domain, without a link: what they look at, and how often.
class TurnsOfADomain : public OnScriptedLink {
 protected:
  void SetUp() override {
    ASSERT_EQ(domain->open_first_endpoint(), 0);
    queue = std::make_shared<Queue>(domain, 8);
    listener = std::make_shared<Listener>(domain, 9, 100);
    {
      const Lock control(domain->control_mutex());
      ASSERT_EQ(listener->listen(3000), 0);
    }
    const Lock guard(domain->mutex());
    listener->use(queue);
    domain->activate(listener);
  }
  void TearDown() override {
    const Lock control(domain->control_mutex());
    listener->close();
  }
  // How often the link is asked for a connection in a turn.
  std::size_t asked() const {
    const auto before = link->count(Kind::kAccept);
    turn();
    return link->count(Kind::kAccept) - before;
  }
  void turn() const {
    const Lock guard(domain->mutex());
    domain->progress();
  }
  // Connections that wait for the request of their peer.
  void expect(unsigned count) const {
    for (; count > 0; --count) link->callers.push_back(MacAddr{{2, 0, 0, 0, 0, 7}});
    ++link->page().accepts;
    turn();
  }

  std::shared_ptr<Queue> queue;
  std::shared_ptr<Listener> listener;
};

TEST_F(TurnsOfADomain, AskForConnectionsOnlyIfTheLinkHasSome) {
  EXPECT_EQ(asked(), 0U);
  ++link->page().accepts;
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(asked(), 0U);
}

TEST_F(TurnsOfADomain, AskForConnectionsWhenTheyShallOrWhenItIsTime) {
  {
    const Lock guard(domain->mutex());
    domain->look_for_connections();
  }
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(asked(), 0U);
  {
    const Lock guard(domain->mutex());
    domain->look_for_connections(domain->now());
    domain->look_for_connections(kNever);  // the earlier one counts
  }
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(asked(), 0U);
}

// So its link wakes nobody for them.
TEST_F(TurnsOfADomain, APollTellsTheLinkWhichChannelsItLooksAtNext) {
  expect(1);
  stm_event_t event{};
  EXPECT_GE(domain->poll(*queue, &event, 1), 0);
  ASSERT_EQ(link->channels.size(), 1U);
  const auto& control = reinterpret_cast<const ChannelControl&>(*link->channels[0]->data());
  EXPECT_EQ(control.gathered.load(), domain->number());
  EXPECT_EQ(link->looked_for, domain->number());
  const auto other = open(std::make_shared<ScriptedLink>());
  EXPECT_NE(other->number(), domain->number());
  other->close();
}

// The link's clock and the domain's may differ by the age of what they hold.
TEST_F(TurnsOfADomain, TimeDoesNotGoBackAfterAPoll) {
  stm_event_t event{};
  link->turn_time = client::now() + kSecond;
  EXPECT_EQ(domain->poll(*queue, &event, 1), 0);
  turn();
  const Lock guard(domain->mutex());
  EXPECT_GE(domain->time(), link->turn_time);
  EXPECT_GE(domain->now(), link->turn_time);
}

// Nobody was woken for the news that brought it.
TEST_F(TurnsOfADomain, APollWakesWhoWouldSleepPastADeadlineItHasSet) {
  stm_event_t event{};
  EXPECT_EQ(domain->wait(*queue, 1, &event, 1, client::now() + 10 * kMillisecond), -EWOULDBLOCK);
  link->callers.push_back(MacAddr{{2, 0, 0, 0, 0, 7}});
  ++link->page().accepts;
  const auto before = link->page().events.load();
  EXPECT_EQ(domain->poll(*queue, &event, 1), 0);
  ASSERT_EQ(connections().size(), 1U);
  EXPECT_NE(connections()[0]->next_deadline(), kNever);
  EXPECT_NE(link->page().events.load(), before);
  EXPECT_EQ(domain->poll(*queue, &event, 1), 0);
  EXPECT_EQ(link->page().events.load(), before + 1) << "it knows the deadline";
}

TEST_F(TurnsOfADomain, EndAllConnectionsOfALinkThatIsLost) {
  expect(3);
  ASSERT_EQ(connections().size(), 3U);
  link->lost = -ENODEV;
  turn();
  EXPECT_TRUE(connections().empty());
  EXPECT_EQ(link->count(Kind::kClose), 3U);
}

TEST_F(TurnsOfADomain, DropWhatHasGoneAndKeepTheOthers) {
  expect(4);
  ASSERT_EQ(connections().size(), 4U);
  std::vector<Connection*> left;
  for (const auto at : {1U, 3U}) left.push_back(connections()[at].get());
  for (const auto at : {0U, 2U}) {
    link->accepted[at].set_state(ChannelState::kFailed, -ETIMEDOUT);
    link->page().news.ring(at);
  }
  turn();
  ASSERT_EQ(connections().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto connection = connections()[i];
    EXPECT_EQ(connection->entry().place, i);
    EXPECT_NE(std::find(left.begin(), left.end(), connection.get()), left.end());
  }
}

TEST_F(TurnsOfADomain, GiveBackTheMemoryOfWhatHasGone) {
  for (int i = 0; i < 5; ++i) {  // 40 connections, with memory for 8 at a time
    expect(8);
    ASSERT_EQ(connections().size(), 8U);
    while (!link->accepted.empty()) {
      link->accepted.back().set_state(ChannelState::kFailed, -ETIMEDOUT);
      link->page().news.ring(static_cast<std::uint32_t>(link->accepted.size() - 1));
      link->accepted.pop_back();
    }
    turn();
    ASSERT_TRUE(connections().empty());
  }
}

}  // namespace
}  // namespace stp::managed
