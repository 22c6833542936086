// SPDX-License-Identifier: BSD-3-Clause
// Finds the connection with the next deadline. A binary heap that stores each member's place, so a
// deadline moves without search or allocation.
#pragma once

#include <utility>
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
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front()->deadline; }
  [[nodiscard]] TimerNode* first() const { return heap_.empty() ? nullptr : heap_.front(); }

  void set(TimerNode& node, Time deadline) {
    if (deadline == kNever) return remove(node);
    node.deadline = deadline;
    if (node.place == TimerNode::kOut) {
      node.place = heap_.size();
      heap_.push_back(&node);
    }
    STP_ASSERT(heap_[node.place] == &node, "a timer stands in the heap where it says");
    if (!up(node.place)) down(node.place);
    STP_ASSERT(heap_[node.place] == &node && next() <= deadline,
               "a timer stands where it says, and none before the first");
  }
  void remove(TimerNode& node) {
    if (node.place == TimerNode::kOut) return;
    const auto hole = node.place;
    STP_ASSERT(hole < heap_.size() && heap_[hole] == &node,
               "a timer that is removed stands in this heap");
    auto* const last = heap_.back();
    heap_.pop_back();
    node = {};
    if (last == &node) return;
    put(hole, last);
    if (!up(hole)) down(hole);
  }

 private:
  void put(std::size_t place, TimerNode* node) {
    heap_[place] = node;
    node->place = place;
  }
  void exchange(std::size_t a, std::size_t b) {
    auto* const node = heap_[a];
    put(a, heap_[b]);
    put(b, node);
  }
  bool up(std::size_t place) {
    bool moved = false;
    while (place > 0 && heap_[place]->deadline < heap_[(place - 1) / 2]->deadline) {
      exchange(place, (place - 1) / 2);
      place = (place - 1) / 2;
      moved = true;
    }
    return moved;
  }
  void down(std::size_t place) {
    for (;;) {
      auto child = 2 * place + 1;
      if (child >= heap_.size()) return;
      if (child + 1 < heap_.size() && heap_[child + 1]->deadline < heap_[child]->deadline) ++child;
      if (heap_[place]->deadline <= heap_[child]->deadline) return;
      exchange(place, child);
      place = child;
    }
  }
  std::vector<TimerNode*> heap_;
};

}  // namespace stp
