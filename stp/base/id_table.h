// SPDX-License-Identifier: BSD-3-Clause
// Ids: objects by id, and a set of 16-bit numbers. An id holds a place and a serial number and is
// never reused. Both are limited; beyond the limits add() fails, so ids never collide.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
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

// A set of 16-bit numbers that finds the next member, or the next number not in it, in a few steps.
class NumberSet {
 public:
  void insert(std::uint16_t number) {
    words_[number / 64] |= bit(number);
    any_[number / 4096] |= bit(number / 64);
    if (~words_[number / 64] == 0) full_[number / 4096] |= bit(number / 64);
  }
  void erase(std::uint16_t number) {
    words_[number / 64] &= ~bit(number);
    full_[number / 4096] &= ~bit(number / 64);
    if (words_[number / 64] == 0) any_[number / 4096] &= ~bit(number / 64);
  }
  // next: the first member from `from` on. next_missing: the first number not in the set.
  [[nodiscard]] std::optional<std::uint32_t> next(std::uint32_t from) const {
    return look(
        from, [this](std::size_t w) { return words_[w]; },
        [this](std::size_t s) { return any_[s]; });
  }
  [[nodiscard]] std::optional<std::uint32_t> next_missing(std::uint32_t from) const {
    return look(
        from, [this](std::size_t w) { return ~words_[w]; },
        [this](std::size_t s) { return ~full_[s]; });
  }

 private:
  static constexpr std::uint32_t kWords = 1024, kSummaries = kWords / 64;
  static std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << number % 64; }
  static std::uint64_t from_bit(std::uint32_t number) { return ~std::uint64_t{0} << number % 64; }

  // The first number whose bit of `word` is set; `summary` has a bit for each word that is not 0.
  template <typename Word, typename Summary>
  static std::optional<std::uint32_t> look(std::uint32_t from, Word&& word, Summary&& summary) {
    auto at = from / 64;
    if (at >= kWords) return std::nullopt;
    auto bits = word(at) & from_bit(from);
    if (bits == 0) {
      auto s = ++at / 64;
      if (s >= kSummaries) return std::nullopt;
      auto words = summary(s) & from_bit(at);
      while (words == 0) {
        if (++s >= kSummaries) return std::nullopt;
        words = summary(s);
      }
      at = s * 64 + static_cast<std::uint32_t>(std::countr_zero(words));
      bits = word(at);
    }
    STP_ASSERT(bits != 0, "a summary names only words that have a number");
    return at * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
  }

  std::array<std::uint64_t, kWords> words_{};
  std::array<std::uint64_t, kSummaries> any_{}, full_{};  // words with any bit; with all bits
};

}  // namespace stp
