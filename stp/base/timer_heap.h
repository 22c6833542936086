// SPDX-License-Identifier: BSD-3-Clause
// Finds the connection with the next deadline, in a heap that knows each member's place: a deadline
// moves without search or allocation. The heap keeps the deadlines and the places itself: a member
// that moves touches no other, whose memory is mostly in no cache where there are many connections.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// Deadlines of numbers, which the caller gives out: small ones, since each has a place in a table.
class DeadlineHeap {
 public:
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().deadline; }
  // The number with that deadline. Requires one.
  [[nodiscard]] std::uint32_t first() const {
    STP_ASSERT(!heap_.empty(), "a heap that is asked for its first number has one");
    return heap_.front().number;
  }
  [[nodiscard]] bool has(std::uint32_t number) const {
    return number < places_.size() && places_[number] != kOut;
  }
  // kNever: it has none.
  [[nodiscard]] Time of(std::uint32_t number) const {
    return has(number) ? heap_[places_[number]].deadline : kNever;
  }
  void set(std::uint32_t number, Time deadline) {
    if (deadline == kNever) return remove(number);
    if (!has(number)) enter(number, deadline);
    move(places_[number], {deadline, number});
    STP_ASSERT(heap_[places_[number]].number == number && next() <= deadline,
               "a timer stands where the heap says, and none before the first");
  }
  void remove(std::uint32_t number) {
    if (!has(number)) return;
    const auto hole = places_[number];
    places_[number] = kOut;
    const auto last = heap_.back();
    heap_.pop_back();
    if (last.number != number) move(hole, last);
  }

 private:
  static constexpr std::uint32_t kOut = ~std::uint32_t{0};
  static constexpr std::uint32_t kChildren = 8;  // of each place: two cache lines
  struct Timer {
    Time deadline;
    std::uint32_t number;
  };

  // By an eighth, not to the double: each idle connection has a timer.
  template <typename Vector>
  static void grow(Vector& vector, std::size_t size) {
    if (size > vector.capacity()) vector.reserve(size + size / 8 + 8);
  }
  // Gives it the last place.
  void enter(std::uint32_t number, Time deadline) {
    if (number >= places_.size()) {
      grow(places_, number + std::size_t{1});
      places_.resize(number + std::size_t{1}, kOut);
    }
    grow(heap_, heap_.size() + 1);
    places_[number] = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back({deadline, number});
  }
  void put(std::uint32_t place, const Timer& timer) {
    heap_[place] = timer;
    places_[timer.number] = place;
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
  std::vector<std::uint32_t> places_;  // by number
};

struct TimerNode {
  static constexpr std::uint32_t kOut = ~std::uint32_t{0};
  Time deadline = kNever;
  std::uint32_t slot = kOut;  // its number while it is in a heap

  [[nodiscard]] bool is_set() const { return slot != kOut; }
};

// Deadlines of objects.
class TimerHeap {
 public:
  [[nodiscard]] Time next() const { return heap_.next(); }
  [[nodiscard]] TimerNode* first() const {
    return next() == kNever ? nullptr : nodes_[heap_.first()];
  }

  void set(TimerNode& node, Time deadline) {
    if (deadline == kNever) return remove(node);
    node.deadline = deadline;
    if (!node.is_set()) enter(node);
    STP_ASSERT(node.slot < nodes_.size() && nodes_[node.slot] == &node, "a timer has its slot");
    heap_.set(node.slot, deadline);
  }
  void remove(TimerNode& node) {
    if (!node.is_set()) return;
    const auto slot = node.slot;
    STP_ASSERT(slot < nodes_.size() && nodes_[slot] == &node,
               "a timer that is removed stands in this heap");
    heap_.remove(slot);
    node = {};
    nodes_[slot] = nullptr;
    free_.push_back(slot);
  }

 private:
  void enter(TimerNode& node) {
    if (free_.empty()) {
      if (nodes_.size() == nodes_.capacity()) nodes_.reserve(nodes_.size() * 9 / 8 + 8);
      node.slot = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back(&node);
      return;
    }
    node.slot = free_.back();
    free_.pop_back();
    nodes_[node.slot] = &node;
  }

  DeadlineHeap heap_;
  std::vector<TimerNode*> nodes_;    // by slot
  std::vector<std::uint32_t> free_;  // slots
};

}  // namespace stp
