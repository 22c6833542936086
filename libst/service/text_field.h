// SPDX-License-Identifier: BSD-3-Clause
// Text in a message: truncated if too long, and always terminated by a zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace stp::service {

template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const auto length = std::min(text.size(), N - 1);
  std::copy_n(text.begin(), length, field);
  std::fill(field + length, field + N, '\0');
}

// Text from another process may lack the zero.
template <std::size_t N>
std::string_view text_of(const char (&field)[N]) {
  return {field, static_cast<std::size_t>(std::find(field, field + N, '\0') - field)};
}

}  // namespace stp::service
