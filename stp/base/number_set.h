// SPDX-License-Identifier: BSD-3-Clause
// A set of 16-bit numbers that finds the next member, or the next number not in it, in a few steps.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "stp/base/assert.h"

namespace stp {

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
