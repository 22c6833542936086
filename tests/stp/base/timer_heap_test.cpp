// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace stp::test {
namespace {

TEST(TimerHeap, names_the_earliest_of_those_that_are_set) {
  TimerHeap heap;
  TimerNode a, b;
  EXPECT_EQ(heap.next(), kNever);
  EXPECT_EQ(heap.first(), nullptr);
  heap.set(a, 20);
  heap.set(b, 10);
  EXPECT_EQ(heap.first(), &b);
  heap.set(b, 30);  // later
  EXPECT_EQ(heap.first(), &a);
  heap.set(b, 5);  // sooner
  EXPECT_EQ(heap.next(), 5U);
  heap.set(b, kNever);
  EXPECT_FALSE(b.is_set());
  EXPECT_EQ(b.deadline, kNever);
  EXPECT_EQ(heap.first(), &a);
  heap.remove(b);  // it is in no heap
  heap.remove(a);
  EXPECT_EQ(heap.next(), kNever);
}

// Against a plain search through all of them.
TEST(TimerHeap, any_of_many_moves_and_leaves) {
  TimerHeap heap;
  std::array<TimerNode, 60> nodes;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto& node = nodes[random() % nodes.size()];
    if (random() % 3 == 0)
      heap.remove(node);
    else
      heap.set(node, random() % 1'000);
    const auto earliest =
        std::ranges::min_element(nodes, {}, [](const TimerNode& each) { return each.deadline; });
    ASSERT_EQ(heap.next(), earliest->deadline) << i;
  }
}

// The memory of the others is in no cache where there are many.
TEST(TimerHeap, one_that_moves_writes_to_no_other) {
  TimerHeap heap;
  std::array<TimerNode, 60> nodes;
  for (auto& node : nodes) heap.set(node, 100);
  const auto before = nodes;
  for (Time deadline = 0; deadline < 1'000; ++deadline) {
    heap.set(nodes[0], deadline);
    heap.set(nodes[0], 1'000 - deadline);
  }
  heap.set(nodes[0], 1'000);  // behind all others
  for (std::size_t i = 1; i < nodes.size(); ++i) EXPECT_EQ(nodes[i].slot, before[i].slot) << i;
  for (auto& node : nodes) heap.remove(node);
  EXPECT_EQ(heap.first(), nullptr);
}

}  // namespace
}  // namespace stp::test
