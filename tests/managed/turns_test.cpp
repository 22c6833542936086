// SPDX-License-Identifier: BSD-3-Clause
// Turns of a domain, without a link: what they look at, and how often.
#include <cerrno>

#include "libst/managed/connection.h"
#include "libst/managed/listener.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

class TurnsOfADomain : public OnScriptedLink {
 protected:
  void SetUp() override {
    ASSERT_EQ(domain->open_first_endpoint(), 0);
    queue = std::make_shared<Queue>(domain, 8);
    listener = std::make_shared<Listener>(domain, 9, 100);
    {
      const std::lock_guard control(domain->control_mutex());
      ASSERT_EQ(listener->listen(3000), 0);
    }
    const std::lock_guard guard(domain->mutex());
    listener->use(queue);
    domain->activate(listener);
  }
  void TearDown() override {
    const std::lock_guard control(domain->control_mutex());
    listener->close();
  }
  // How often the link is asked for a connection in a turn.
  std::size_t asked() const {
    const auto before = link->count(Kind::kAccept);
    turn();
    return link->count(Kind::kAccept) - before;
  }
  void turn() const {
    const std::lock_guard guard(domain->mutex());
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
    const std::lock_guard guard(domain->mutex());
    domain->look_for_connections();
  }
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(asked(), 0U);
  {
    const std::lock_guard guard(domain->mutex());
    domain->look_for_connections(domain->now());
    domain->look_for_connections(kNever);  // the earlier one counts
  }
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(asked(), 0U);
}

TEST_F(TurnsOfADomain, EndAllConnectionsOfALinkThatIsLost) {
  expect(3);
  ASSERT_EQ(domain->connections().size(), 3U);
  link->lost = -ENODEV;
  turn();
  EXPECT_TRUE(domain->connections().empty());
  EXPECT_EQ(link->count(Kind::kClose), 3U);
}

TEST_F(TurnsOfADomain, DropWhatHasGoneAndKeepTheOthers) {
  expect(4);
  ASSERT_EQ(domain->connections().size(), 4U);
  std::vector<Connection*> left;
  for (const auto at : {1U, 3U}) left.push_back(domain->connections()[at].get());
  for (const auto at : {0U, 2U}) {
    link->accepted[at].set_state(ChannelState::kFailed, -ETIMEDOUT);
    link->page().news.ring(at);
  }
  turn();
  ASSERT_EQ(domain->connections().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& connection = domain->connections()[i];
    EXPECT_EQ(connection->entry().place, i);
    EXPECT_NE(std::find(left.begin(), left.end(), connection.get()), left.end());
  }
}

TEST_F(TurnsOfADomain, GiveBackTheMemoryOfWhatHasGone) {
  for (int i = 0; i < 5; ++i) {  // 40 connections, with memory for 8 at a time
    expect(8);
    ASSERT_EQ(domain->connections().size(), 8U);
    while (!link->accepted.empty()) {
      link->accepted.back().set_state(ChannelState::kFailed, -ETIMEDOUT);
      link->page().news.ring(static_cast<std::uint32_t>(link->accepted.size() - 1));
      link->accepted.pop_back();
    }
    turn();
    ASSERT_TRUE(domain->connections().empty());
  }
}

}  // namespace
}  // namespace stp::managed
