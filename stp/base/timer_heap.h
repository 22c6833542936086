// SPDX-License-Identifier: BSD-3-Clause
// Finds the connection with the next deadline. A heap that knows each member's place, so a deadline
// moves without search or allocation. The heap keeps the deadlines and the places itself: a member
// that moves touches no other, whose memory is mostly in no cache where there are many connections.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

struct TimerNode {
  static constexpr std::uint32_t kOut = ~std::uint32_t{0};
  Time deadline = kNever;
  std::uint32_t slot = kOut;  // its number while it is in a heap

  [[nodiscard]] bool is_set() const { return slot != kOut; }
};

class TimerHeap {
 public:
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().deadline; }
  [[nodiscard]] TimerNode* first() const {
    return heap_.empty() ? nullptr : nodes_[heap_.front().slot];
  }

  void set(TimerNode& node, Time deadline) {
    if (deadline == kNever) return remove(node);
    node.deadline = deadline;
    if (!node.is_set()) enter(node);
    STP_ASSERT(node.slot < nodes_.size() && nodes_[node.slot] == &node, "a timer has its slot");
    move(places_[node.slot], {deadline, node.slot});
    STP_ASSERT(heap_[places_[node.slot]].slot == node.slot && next() <= deadline,
               "a timer stands where the heap says, and none before the first");
  }
  void remove(TimerNode& node) {
    if (!node.is_set()) return;
    const auto slot = node.slot;
    STP_ASSERT(slot < nodes_.size() && nodes_[slot] == &node,
               "a timer that is removed stands in this heap");
    const auto hole = places_[slot];
    node = {};
    nodes_[slot] = nullptr;
    places_[slot] = std::exchange(free_, slot);
    const auto last = heap_.back();
    heap_.pop_back();
    if (last.slot != slot) move(hole, last);
  }

 private:
  static constexpr std::uint32_t kChildren = 8;  // of each place: two cache lines
  struct Timer {
    Time deadline;
    std::uint32_t slot;
  };

  // By an eighth, not to the double: each idle connection has a timer.
  template <typename Vector>
  static void grow(Vector& vector) {
    const auto size = vector.size();
    if (size == vector.capacity()) vector.reserve(size + size / 8 + 8);
  }
  // Gives it a slot and the last place.
  void enter(TimerNode& node) {
    grow(heap_);
    if (free_ == TimerNode::kOut) {
      grow(nodes_);
      grow(places_);
      free_ = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back(nullptr);
      places_.push_back(TimerNode::kOut);
    }
    node.slot = std::exchange(free_, places_[free_]);
    nodes_[node.slot] = &node;
    places_[node.slot] = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back({node.deadline, node.slot});
  }
  void put(std::uint32_t place, const Timer& timer) {
    heap_[place] = timer;
    places_[timer.slot] = place;
  }
  // Puts `timer` where it belongs, given that the heap is in order but for the place `hole`.
  void move(std::uint32_t hole, const Timer& timer) {
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
  std::uint32_t sink(std::uint32_t hole, Time deadline) {
    const auto size = static_cast<std::uint32_t>(heap_.size());
    for (;;) {
      const auto begin = kChildren * hole + 1;
      const auto end = std::min(begin + kChildren, size);
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
  // By slot: whose it is, and its place in the heap, or the next free slot.
  std::vector<TimerNode*> nodes_;
  std::vector<std::uint32_t> places_;
  std::uint32_t free_ = TimerNode::kOut;
};

}  // namespace stp
