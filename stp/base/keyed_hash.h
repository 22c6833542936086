// SPDX-License-Identifier: BSD-3-Clause
// A hash that cannot be computed without its secret: SipHash-2-4 of whole 64-bit words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "stp/types.h"

namespace stp {

class KeyedHash {
 public:
  void draw(Random& random) {
    for (auto& word : secret_) word = std::uint64_t{random.next()} << 32 | random.next();
  }
  template <std::size_t N>
  [[nodiscard]] std::uint64_t operator()(const std::array<std::uint64_t, N>& words) const {
    State v{secret_[0] ^ 0x736f6d6570736575, secret_[1] ^ 0x646f72616e646f6d,
            secret_[0] ^ 0x6c7967656e657261, secret_[1] ^ 0x7465646279746573};
    for (const auto word : words) absorb(v, word);
    absorb(v, std::uint64_t{N * 8} << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
  }

 private:
  using State = std::array<std::uint64_t, 4>;
  static constexpr void half(State& v, std::size_t a, std::size_t b, int by) {
    v[a] += v[b];
    v[b] = std::rotl(v[b], by) ^ v[a];
  }
  static constexpr void mix(State& v) {
    half(v, 0, 1, 13);
    v[0] = std::rotl(v[0], 32);
    half(v, 2, 3, 16);
    half(v, 0, 3, 21);
    half(v, 2, 1, 17);
    v[2] = std::rotl(v[2], 32);
  }
  static constexpr void absorb(State& v, std::uint64_t word) {
    v[3] ^= word;
    mix(v);
    mix(v);
    v[0] ^= word;
  }

  std::array<std::uint64_t, 2> secret_{};
};

}  // namespace stp
