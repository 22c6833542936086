// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp::files {

template <typename T>
void put_big_endian(std::byte* at, T value) {
  for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(std::uint64_t{value} >> 8))
    at[i] = static_cast<std::byte>(value);
}

template <typename T>
T get_big_endian(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = value << 8 | std::to_integer<std::uint8_t>(at[i]);
  return static_cast<T>(value);
}

}  // namespace stp::files
