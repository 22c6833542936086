// SPDX-License-Identifier: BSD-3-Clause
// Finds the connection with the next deadline, in a heap that knows each member's place: a deadline
// moves without search or allocation. The heap keeps the deadlines and the places itself: a member
// that moves touches no other, whose memory is mostly in no cache where there are many connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/types.h"

namespace stp {

// Deadlines of numbers, which the caller gives out: small ones, since each has a place in a table.
class DeadlineHeap {
 public:
  [[nodiscard]] Time next() const { return heap_[kRoot].deadline; }
  // The number with that deadline. Requires one.
  [[nodiscard]] std::uint32_t first() const {
    STP_ASSERT(next() != kNever, "a heap that is asked for its first number has one");
    return heap_[kRoot].number;
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
    if (!has(number)) enter(number);
    move(places_[number], {deadline, number});
    STP_ASSERT(heap_[places_[number]].number == number && next() <= deadline,
               "a timer stands where the heap says, and none before the first");
  }
  void remove(std::uint32_t number) {
    if (!has(number)) return;
    const auto hole = places_[number];
    places_[number] = kOut;
    const auto last = std::exchange(heap_[--end_], Timer{});
    if (end_ % kChildren == 0) heap_.resize(end_);
    if (last.number != number) move(hole, last);
  }

 private:
  static constexpr std::uint32_t kOut = ~std::uint32_t{0};
  static constexpr std::uint32_t kChildren = 8;  // of each place: two cache lines
  // With this as the first place, the children of each one begin with a multiple of kChildren.
  static constexpr std::uint32_t kRoot = kChildren - 1;
  struct Timer {
    Time deadline = kNever;
    std::uint32_t number = kOut;
  };
  static constexpr std::align_val_t kLines{kChildren * sizeof(Timer)};
  static_assert(kChildren * sizeof(Timer) == 2 * kCacheLine);
  template <typename T>
  struct OnLines {
    using value_type = T;
    T* allocate(std::size_t count) {
      return static_cast<T*>(::operator new(count * sizeof(T), kLines));
    }
    void deallocate(T* memory, std::size_t) { ::operator delete(memory, kLines); }
    bool operator==(const OnLines&) const = default;
  };

  [[nodiscard]] static std::uint32_t parent(std::uint32_t place) {
    return place / kChildren + kRoot - 1;
  }
  [[nodiscard]] static std::uint32_t children(std::uint32_t place) {
    return kChildren * (place - kRoot + 1);
  }
  // By an eighth, not to the double: each idle connection has a timer.
  template <typename Vector>
  static void grow(Vector& vector, std::size_t size) {
    if (size > vector.capacity()) vector.reserve(size + size / 8 + 8);
  }
  // Gives it the last place.
  void enter(std::uint32_t number) {
    if (number >= places_.size()) {
      grow(places_, number + std::size_t{1});
      places_.resize(number + std::size_t{1}, kOut);
    }
    if (end_ == heap_.size()) {
      grow(heap_, heap_.size() + kChildren);
      heap_.resize(heap_.size() + kChildren);
    }
    places_[number] = end_++;
  }
  void put(std::uint32_t place, const Timer& timer) {
    heap_[place] = timer;
    places_[timer.number] = place;
  }
  // Puts `timer` where it belongs, given that the heap is in order but for the place `hole`.
  void move(std::uint32_t hole, const Timer& timer) {
    const auto from = hole;
    for (; hole != kRoot; hole = parent(hole)) {
      const auto& above = heap_[parent(hole)];
      if (above.deadline <= timer.deadline) break;
      put(hole, above);
    }
    if (hole == from) hole = sink(hole, timer.deadline);
    put(hole, timer);
  }
  // Moves those below `hole` up that are due before `deadline`. Returns the place that is free
  // then.
  std::uint32_t sink(std::uint32_t hole, Time deadline) {
    for (auto begin = children(hole); begin < end_; begin = children(hole)) {
      const auto first = earliest(begin);
      if (deadline <= heap_[first].deadline) break;
      put(hole, heap_[first]);
      hole = first;
    }
    return hole;
  }
  // Of the kChildren places from `begin` on. Nobody can foresee which one it is, so no branch
  // depends on it.
  [[nodiscard]] std::uint32_t earliest(std::uint32_t begin) const {
    struct Found {
      Time deadline;
      std::uint32_t place;
    };
    const auto at = [&](std::uint32_t i) { return Found{heap_[begin + i].deadline, begin + i}; };
    const auto of = [](const Found& a, const Found& b) {
      const bool later = b.deadline < a.deadline;
      return Found{later ? b.deadline : a.deadline, later ? b.place : a.place};
    };
    static_assert(kChildren == 8);
    return of(of(of(at(0), at(1)), of(at(2), at(3))), of(of(at(4), at(5)), of(at(6), at(7)))).place;
  }

  // Whole groups of children: places that nobody has are never due.
  std::vector<Timer, OnLines<Timer>> heap_ = std::vector<Timer, OnLines<Timer>>(kChildren);
  std::uint32_t end_ = kRoot;          // behind the last place that is used
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
