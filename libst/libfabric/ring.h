// SPDX-License-Identifier: BSD-3-Clause
// A queue of places that are used again: it grows, and takes no memory for each entry.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stp::fi {

template <class T>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The new last one, with what an earlier one has left there.
  T& add() {
    if (count_ == places_.size()) grow();
    return places_[(first_ + count_++) & (places_.size() - 1)];
  }
  [[nodiscard]] T& front() { return places_[first_]; }
  void pop_front() {
    first_ = (first_ + 1) & (places_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    constexpr std::size_t kLeast = 64;
    std::vector<T> larger(places_.empty() ? kLeast : 2 * places_.size());
    for (std::size_t i = 0; i < count_; ++i)
      larger[i] = std::move(places_[(first_ + i) & (places_.size() - 1)]);
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> places_;  // a power of two
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace stp::fi
