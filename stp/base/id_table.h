// SPDX-License-Identifier: BSD-3-Clause
// Objects by id. An id holds a place and a serial number and is never reused. Both are limited;
// beyond the limits add() fails, so ids never collide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "stp/base/assert.h"

namespace stp {

template <typename T>
class IdTable {
 public:
  static constexpr unsigned kIndexBits = 20;
  static constexpr std::size_t kMost = std::size_t{1} << kIndexBits;
  static constexpr std::uint64_t kLastSerial = ~std::uint64_t{0} >> kIndexBits;

  // `first_serial`: for tests that use up the serial numbers.
  explicit IdTable(std::size_t most = kMost, std::uint64_t first_serial = 1)
      : most_(std::min(most, kMost)), next_serial_(first_serial) {}

  // Sets T's member `id`. nullptr: no room, or no id left.
  T* add(std::unique_ptr<T> object) {
    STP_ASSERT(object != nullptr, "an id is given to an object");
    if (size_ >= most_ || next_serial_ > kLastSerial) return nullptr;
    std::size_t index;
    if (free_.empty()) {
      index = slots_.size();
      slots_.emplace_back();
    } else {
      index = free_.front();
      free_.pop_front();
    }
    STP_ASSERT(index < kMost, "an index fits the bits that an id has for it");
    STP_ASSERT(slots_[index] == nullptr, "a free place of the table is empty");
    object->id = next_serial_++ << kIndexBits | index;
    slots_[index] = std::move(object);
    ++size_;
    STP_ASSERT(slots_.size() == size_ + free_.size(), "a place is either used or free");
    return slots_[index].get();
  }
  [[nodiscard]] T* find(std::uint64_t id) const {
    const auto index = id & (kMost - 1);
    if (index >= slots_.size() || !slots_[index] || slots_[index]->id != id) return nullptr;
    return slots_[index].get();
  }
  void remove(std::uint64_t id) {
    if (find(id) == nullptr) return;
    const auto index = id & (kMost - 1);
    free_.push_back(index);
    slots_[index].reset();
    --size_;
    STP_ASSERT(slots_.size() == size_ + free_.size(), "a place is either used or free");
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::size_t most_;
  std::uint64_t next_serial_;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<T>> slots_;
  std::deque<std::size_t> free_;  // the place unused for longest is used first
};

}  // namespace stp
