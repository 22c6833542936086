// SPDX-License-Identifier: BSD-3-Clause
// A queue that keeps its memory: it grows to the largest size it has had and then allocates no
// more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "stp/base/assert.h"

namespace stp::udapl {

template <typename Value>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // 0: the oldest.
  Value& operator[](std::size_t index) {
    STP_ASSERT(index < size_, "an index lies within the queue");
    return slots_[slot(index)];
  }
  Value& front() { return (*this)[0]; }
  Value& back() { return (*this)[size_ - 1]; }

  void push_back(Value value) { add() = std::move(value); }
  // Adds one that is as clear() leaves it, to be filled in where it stays.
  Value& add() {
    if (size_ == slots_.size()) grow();
    return slots_[slot(size_++)];
  }
  void pop_front() {
    clear(front());
    head_ = slot(1);
    --size_;
  }
  void pop_back() {
    clear(back());
    --size_;
  }

 private:
  static constexpr std::size_t kLeast = 4;

  // Lets go of what it holds. Some know a shorter way than to become a copy of a new one.
  static void clear(Value& value) {
    if constexpr (requires { value.clear(); })
      value.clear();
    else
      value = {};
  }
  // The number of slots is a power of two.
  [[nodiscard]] std::size_t slot(std::size_t index) const {
    return (head_ + index) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Value> larger(std::max(kLeast, 2 * slots_.size()));
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<Value> slots_;
  std::size_t head_ = 0, size_ = 0;
};

}  // namespace stp::udapl
