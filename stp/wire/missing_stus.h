// SPDX-License-Identifier: BSD-3-Clause
// The option payloads by which a managed write loses little: what its sender can do, and which STUs
// a CTS asks for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::wire {

// What the sender can do: a word of the option payload of its RTS.
// protocol: 10.23, 13.19
inline constexpr std::size_t kAbilitiesAt = 4;
inline constexpr std::uint32_t kRepeatsMissing = 1;  // repeats what a CTS says is missing, no more
inline constexpr std::uint32_t kSendsParts = 2;      // sends the part that a first CTS names

// A bit for each STU from the one that holds F_Offset on. Those beyond the last bit may be missing,
// too; they are asked for another time.
// protocol: 10.23
class MissingStus {
 public:
  static constexpr std::uint32_t kMost = 8 * kOptionSize;

  void add(std::uint32_t number) { word(number) |= bit(number); }
  // `number` is below kMost.
  [[nodiscard]] bool contains(std::uint32_t number) const {
    return (words_[number / 64] & bit(number)) != 0;
  }

  void encode(std::byte* option) const {
    for (std::size_t i = 0; i < words_.size(); ++i) store64(option + 8 * i, words_[i]);
  }
  static MissingStus decode(const std::byte* option) {
    MissingStus missing;
    for (std::size_t i = 0; i < missing.words_.size(); ++i)
      missing.words_[i] = load64(option + 8 * i);
    return missing;
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t bit(std::uint32_t number) {
    return std::uint64_t{1} << (63 - number % 64);
  }
  std::uint64_t& word(std::uint32_t number) { return words_[number / 64]; }

  std::array<std::uint64_t, kOptionSize / 8> words_{};
};

}  // namespace stp::wire
