// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp::files {

template <typename T>
void put_big_endian(std::uint8_t* at, T value) {
  for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(std::uint64_t{value} >> 8))
    at[i] = static_cast<std::uint8_t>(value);
}

template <typename T>
T get_big_endian(const std::uint8_t* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8 | at[i];
  return static_cast<T>(value);
}

}  // namespace stp::files
