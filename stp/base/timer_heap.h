// SPDX-License-Identifier: BSD-3-Clause
// Finds the connection with the next deadline. A heap that stores each member's place, so a
// deadline moves without search or allocation. The heap keeps the deadlines itself and is flat: a
// member that moves touches few others, whose memory is mostly in no cache where there are many
// connections.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

struct TimerNode {
  static constexpr std::size_t kOut = ~std::size_t{0};
  Time deadline = kNever;
  std::size_t place = kOut;
};

class TimerHeap {
 public:
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().deadline; }
  [[nodiscard]] TimerNode* first() const { return heap_.empty() ? nullptr : heap_.front().node; }

  void set(TimerNode& node, Time deadline) {
    if (deadline == kNever) return remove(node);
    node.deadline = deadline;
    if (node.place == TimerNode::kOut) {
      node.place = heap_.size();
      grow();
      heap_.push_back({deadline, &node});
    }
    STP_ASSERT(heap_[node.place].node == &node, "a timer stands in the heap where it says");
    move(node.place, {deadline, &node});
    STP_ASSERT(heap_[node.place].node == &node && next() <= deadline,
               "a timer stands where it says, and none before the first");
  }
  void remove(TimerNode& node) {
    if (node.place == TimerNode::kOut) return;
    const auto hole = node.place;
    STP_ASSERT(hole < heap_.size() && heap_[hole].node == &node,
               "a timer that is removed stands in this heap");
    const auto last = heap_.back();
    heap_.pop_back();
    node = {};
    if (last.node != &node) move(hole, last);
  }

 private:
  static constexpr std::size_t kChildren = 8;  // of each place: two cache lines
  struct Timer {
    Time deadline;
    TimerNode* node;
  };

  // By an eighth, not to the double: each idle connection has a timer.
  void grow() {
    const auto size = heap_.size();
    if (size == heap_.capacity()) heap_.reserve(size + size / 8 + 8);
  }
  void put(std::size_t place, const Timer& timer) {
    heap_[place] = timer;
    timer.node->place = place;
  }
  // Puts `timer` where it belongs, given that the heap is in order but for the place `hole`.
  void move(std::size_t hole, const Timer& timer) {
    const auto from = hole;
    for (; hole > 0; hole = (hole - 1) / kChildren) {
      const auto& parent = heap_[(hole - 1) / kChildren];
      if (parent.deadline <= timer.deadline) break;
      put(hole, parent);
    }
    if (hole == from) hole = sink(hole, timer.deadline);
    put(hole, timer);
  }
  // Moves those below `hole` up that are due before `deadline`. Returns the place that is free
  // then.
  std::size_t sink(std::size_t hole, Time deadline) {
    for (;;) {
      const auto begin = kChildren * hole + 1;
      const auto end = std::min(begin + kChildren, heap_.size());
      if (begin >= end) return hole;
      auto first = begin;
      for (auto child = begin + 1; child < end; ++child)
        if (heap_[child].deadline < heap_[first].deadline) first = child;
      if (deadline <= heap_[first].deadline) return hole;
      put(hole, heap_[first]);
      hole = first;
    }
  }

  std::vector<Timer> heap_;
};

}  // namespace stp
