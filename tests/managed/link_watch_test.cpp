// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/link_watch.h"

#include <cerrno>
#include <optional>

#include "dpdk_port/link/link_state.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

using port::LinkState;

class LinkWatches : public OnScriptedLink {
 protected:
  void becomes(LinkState state) const {
    link->page().link_state = static_cast<std::uint32_t>(state);
    ++link->page().link_changes;
  }
  std::shared_ptr<Queue> queue_of(std::size_t places) const {
    return std::make_shared<Queue>(domain, places);
  }
  // The next event, after a look at the link.
  std::optional<stm_event_t> told(Queue& queue) {
    watch.look(*link);
    stm_event_t event{};
    if (queue.take(&event, 1) == 0) return std::nullopt;
    return event;
  }

  LinkWatch watch;
};

TEST_F(LinkWatches, BeginWithThePresentState) {
  becomes(LinkState::kNoCarrier);
  const auto queue = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, queue, 9));
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, unsigned{STM_LINK});
  EXPECT_EQ(event->context, 9U);
  EXPECT_EQ(event->status, -ENETDOWN);
  EXPECT_EQ(event->tag, unsigned{STM_LINK_NO_CARRIER});
  EXPECT_EQ(event->message, 1U);
  EXPECT_FALSE(told(*queue)) << "nothing has changed";
}

TEST_F(LinkWatches, TellEachChangeOnce) {
  const auto queue = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  ASSERT_TRUE(told(*queue));
  for (const auto state : {LinkState::kUp, LinkState::kDown, LinkState::kUp}) {
    becomes(state);
    const auto event = told(*queue);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->status, state == LinkState::kUp ? 0 : -ENETDOWN);
    EXPECT_FALSE(told(*queue));
  }
}

TEST_F(LinkWatches, ThatFindNoPlaceTellThePresentStateLater) {
  const auto queue = queue_of(1);
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  for (const auto state : {LinkState::kDown, LinkState::kNoPeer, LinkState::kUp}) {
    becomes(state);
    watch.look(*link);
    EXPECT_TRUE(watch.is_behind());
  }
  stm_event_t first{};
  ASSERT_EQ(queue->take(&first, 1), 1);
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->tag, unsigned{STM_LINK_UP});
  EXPECT_EQ(event->message, 3U) << "how often it has changed";
  EXPECT_FALSE(watch.is_behind());
  EXPECT_FALSE(told(*queue));
}

TEST_F(LinkWatches, AQueueWithoutAPlaceChangesNothing) {
  const auto queue = queue_of(2), full = queue_of(1);
  ASSERT_TRUE(full->reserve(1));
  EXPECT_FALSE(watch.begin(*link, full, 1));
  EXPECT_FALSE(full->used());
  ASSERT_TRUE(watch.begin(*link, queue, 2));
  ASSERT_TRUE(told(*queue));
  EXPECT_FALSE(watch.begin(*link, full, 3));
  becomes(LinkState::kDown);
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->context, 2U);
}

TEST_F(LinkWatches, AnotherQueueTakesTheReportsOver) {
  const auto first = queue_of(2), second = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, first, 1));
  ASSERT_TRUE(told(*first));
  ASSERT_TRUE(watch.begin(*link, second, 2));
  EXPECT_FALSE(first->used());
  ASSERT_TRUE(told(*second));
  becomes(LinkState::kDown);
  EXPECT_FALSE(told(*first));
  EXPECT_TRUE(told(*second));
}

TEST_F(LinkWatches, AServiceThatHasGoneIsToldOnceWithItsReason) {
  const auto queue = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  ASSERT_TRUE(told(*queue));
  link->lost = -ENODEV;
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->status, -ENODEV);
  becomes(LinkState::kUp);
  EXPECT_FALSE(told(*queue)) << "the page is nobody's any more";
}

TEST_F(LinkWatches, ThatHaveEndedTellNothingAndHoldNoQueue) {
  const auto queue = queue_of(2);
  watch.look(*link);  // nobody has asked
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  ASSERT_TRUE(told(*queue));
  watch.end();
  becomes(LinkState::kDown);
  EXPECT_FALSE(told(*queue));
  EXPECT_FALSE(queue->used());
  EXPECT_TRUE(queue->reserve(2)) << "no place is held";
}

}  // namespace
}  // namespace stp::managed
