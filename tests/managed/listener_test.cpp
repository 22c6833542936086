// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/listener.h"

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "libst/client/error.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

class ListenersOfADomain : public OnScriptedLink {
 protected:
  void SetUp() override {
    ASSERT_EQ(domain->open_first_endpoint(), 0);
    queue = std::make_shared<Queue>(domain, 8);
  }
  std::shared_ptr<Listener> make(unsigned backlog) {
    auto listener = std::make_shared<Listener>(domain, 9, backlog);
    const Lock guard(domain->mutex());
    listener->use(queue);
    return listener;
  }
  int listen(Listener& listener) const {
    const Lock control(domain->control_mutex());
    return listener.listen(3000);
  }
  void close(Listener& listener) const {
    const Lock control(domain->control_mutex());
    listener.close();
  }
  // A listener that listens, in the turns of its domain.
  std::shared_ptr<Listener> listening(unsigned backlog) {
    auto listener = make(backlog);
    EXPECT_EQ(listen(*listener), 0);
    const Lock guard(domain->mutex());
    domain->activate(listener);
    return listener;
  }
  void call(unsigned count) const {
    for (; count > 0; --count) link->callers.push_back(MacAddr{{2, 0, 0, 0, 0, 7}});
    ++link->page().accepts;
  }
  void turn() const {
    const Lock guard(domain->mutex());
    domain->progress();
  }

  std::shared_ptr<Queue> queue;
};

TEST_F(ListenersOfADomain, EndpointsAreUsedAgain) {
  for (int i = 0; i < 3; ++i) {
    const auto listener = make(1);
    ASSERT_EQ(listen(*listener), 0);
    close(*listener);
  }
  EXPECT_EQ(link->count(Kind::kOpenEndpoint), 2U) << "the first one, and one to listen on";
  const auto listens = link->sent(Kind::kListen), ends = link->sent(Kind::kUnlisten);
  ASSERT_EQ(ends.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(listens[i].uport, 3000U);
    EXPECT_EQ(listens[i].endpoint, ends[i].endpoint);
  }
}

TEST_F(ListenersOfADomain, APortThatIsTakenIsNamedAndTheEndpointComesBack) {
  link->refuse = [](const auto& request) {
    return request.kind == Kind::kListen ? -EADDRINUSE : 0;
  };
  const auto refused = make(1);
  EXPECT_EQ(listen(*refused), -EADDRINUSE);
  EXPECT_NE(std::string(client::describe(-EADDRINUSE)).find("3000"), std::string::npos);
  link->refuse = {};
  const auto listener = make(1);
  ASSERT_EQ(listen(*listener), 0);
  EXPECT_EQ(link->count(Kind::kOpenEndpoint), 2U);
  close(*listener);
}

TEST_F(ListenersOfADomain, ThoseThatHaveNotAskedYetTakeNoMorePlacesThanTheBacklog) {
  const auto listener = listening(3);
  call(5);
  turn();
  EXPECT_EQ(link->accepted.size(), 3U);
  EXPECT_EQ(connections().size(), 3U);
  close(*listener);
}

TEST_F(ListenersOfADomain, OneThatFailsGivesItsPlaceToTheNext) {
  const auto listener = listening(3);
  call(4);
  turn();
  ASSERT_EQ(link->accepted.size(), 3U);
  link->accepted[1].set_state(ChannelState::kFailed, -ETIMEDOUT);
  link->page().news.ring(1);
  for (int i = 0; i < 2; ++i) turn();
  EXPECT_EQ(link->accepted.size(), 4U);
  EXPECT_EQ(queue->size(), 0U) << "the program knows of none";
  close(*listener);
}

// Memory for the handshake is registered by the domain's thread, not in the turn.
TEST_F(ListenersOfADomain, NoConnectionIsTakenWithoutMemoryForIt) {
  const auto listener = listening(20);
  call(10);
  turn();
  EXPECT_EQ(link->accepted.size(), 8U);
  ASSERT_EQ(domain->provide_staging(), 0);
  turn();
  EXPECT_EQ(link->accepted.size(), 10U);
  close(*listener);
}

TEST_F(ListenersOfADomain, OneThatIsClosedTakesNobodyAndHoldsNoQueue) {
  const auto listener = listening(3);
  close(*listener);
  call(1);
  turn();
  EXPECT_TRUE(link->accepted.empty());
  EXPECT_FALSE(queue->used());
}

// protocol: 9.40
TEST(SilentConnections, TheOldestOfTheStationWithMostGoes) {
  using Stations = std::vector<std::uint64_t>;
  EXPECT_EQ(Listener::oldest_of_most({}, 0), std::nullopt);
  EXPECT_EQ(Listener::oldest_of_most(Stations{7, 8}, 0), std::nullopt) << "none is old";
  EXPECT_EQ(Listener::oldest_of_most(Stations{7, 8, 9}, 3), 0U);
  EXPECT_EQ(Listener::oldest_of_most(Stations{7, 8, 9, 8}, 4), 1U);
  EXPECT_EQ(Listener::oldest_of_most(Stations{7, 8, 9, 8}, 1), 0U) << "those of 8 are too young";
}

}  // namespace
}  // namespace stp::managed
