// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/ring_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>

namespace stp::test {
namespace {

TEST(RingQueue, an_element_may_be_appended_to_its_own_queue) {
  RingQueue<std::string> queue;
  queue.push_back("a long text that is not kept within the string itself");
  for (int i = 0; i < 20; ++i) queue.push_back(queue.front());
  EXPECT_EQ(queue.size(), 21U);
  EXPECT_EQ(queue.back(), queue.front());
}

TEST(RingQueue, what_leaves_lets_go_of_its_resources) {
  RingQueue<std::shared_ptr<int>> queue;
  const auto shared = std::make_shared<int>(1);
  for (int i = 0; i < 5; ++i) queue.push_back(shared);
  queue.pop_front();
  EXPECT_EQ(shared.use_count(), 5);
  queue.pop_back();
  queue.erase(queue.begin() + 1);
  EXPECT_EQ(shared.use_count(), 3);
  queue.clear();
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_TRUE(queue.empty());
}

TEST(RingQueue, steady_use_moves_nothing) {
  RingQueue<int> queue;
  for (int i = 0; i < 8; ++i) queue.push_back(i);
  const auto* const first = &queue.front();
  for (int i = 0; i < 8; ++i) {
    queue.pop_front();
    queue.push_back(i);
  }
  EXPECT_EQ(&queue.front(), first);
}

// So a queue of one element at a time stays within the same cache lines.
TEST(RingQueue, one_that_gets_empty_begins_with_the_same_place_again) {
  RingQueue<int> queue;
  queue.push_back(0);
  const auto* const place = &queue.front();
  for (int i = 0; i < 20; ++i) {
    queue.pop_front();
    queue.push_back(i);
    ASSERT_EQ(&queue.front(), place) << i;
  }
}

TEST(RingQueue, elements_in_a_row_are_appended_and_read_together) {
  RingQueue<int> queue;
  std::deque<int> expected;
  for (int next = 0, round = 1; round < 200; ++round) {
    for (std::size_t left = static_cast<std::size_t>(round % 11); left != 0;) {
      const auto row = queue.places(left);
      ASSERT_GE(row.size(), 1U);
      ASSERT_LE(row.size(), left);
      for (int& place : row) expected.push_back(place = next++);
      left -= row.size();
    }
    ASSERT_EQ(queue.size(), expected.size());
    for (std::size_t at = 0; at < expected.size();) {
      const auto row = queue.row(at, 5);
      ASSERT_GE(row.size(), 1U);
      ASSERT_LE(row.size(), 5U);
      for (const int value : row) ASSERT_EQ(value, expected[at++]);
    }
    const auto gone = std::min<std::size_t>(expected.size(), static_cast<std::size_t>(round % 10));
    queue.pop_front(gone);
    expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(gone));
  }
}

TEST(RingQueue, its_block_begins_with_a_cache_line) {
  RingQueue<char> queue;
  for (int i = 0; i < 100; ++i) {
    queue.push_back('a');
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(&queue.front()) % 64, 0U) << i;
  }
}

TEST(RingQueue, one_that_is_moved_brings_its_elements) {
  RingQueue<std::string> from, to;
  from.push_back("first");
  from.push_back("second");
  to = std::move(from);
  RingQueue<std::string> made(std::move(to));
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made.front(), "first");
  EXPECT_EQ(made.back(), "second");
}

TEST(RingQueue, does_the_same_as_a_deque) {
  RingQueue<int> queue;
  std::deque<int> model;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    switch (random() % 8) {
      case 0:
        if (model.empty()) break;
        queue.pop_front();
        model.pop_front();
        break;
      case 1:
        if (model.empty()) break;
        queue.pop_back();
        model.pop_back();
        break;
      case 2: {
        if (model.empty()) break;
        const auto at = static_cast<std::ptrdiff_t>(random() % model.size());
        queue.erase(queue.begin() + at);
        model.erase(model.begin() + at);
        break;
      }
      case 3: {
        const auto count = random() % 3 % (model.size() + 1);
        queue.pop_front(count);
        model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(count));
        break;
      }
      case 4:
        if (random() % 50 != 0) break;
        erase_if(queue, [](int each) { return each % 3 == 0; });
        std::erase_if(model, [](int each) { return each % 3 == 0; });
        break;
      default:
        queue.push_back(i);
        model.push_back(i);
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_TRUE(std::equal(queue.begin(), queue.end(), model.begin())) << i;
  }
}

}  // namespace
}  // namespace stp::test
