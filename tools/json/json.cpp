// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace stp {

Json& Json::open(std::string_view key, char bracket) {
  begin_value(key);
  text_ += bracket;
  closing_.push_back(bracket == '{' ? '}' : ']');
  first_ = true;
  return *this;
}

Json& Json::end() {
  text_ += closing_.back();
  closing_.pop_back();
  first_ = false;
  return *this;
}

Json& Json::value(std::string_view key, std::string_view text) {
  begin_value(key);
  quote(text);
  return *this;
}

// std::to_chars writes the decimal point independently of the locale. JSON has no infinities.
Json& Json::value(std::string_view key, double number) {
  if (!std::isfinite(number)) return null(key);
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                 std::chars_format::fixed, 3)
                       .ptr;
  return raw(key, {digits.data(), static_cast<std::size_t>(end - digits.data())});
}

Json& Json::raw(std::string_view key, std::string_view text) {
  begin_value(key);
  text_ += text;
  return *this;
}

void Json::begin_value(std::string_view key) {
  if (!first_) text_ += ',';
  first_ = false;
  if (closing_.empty() || closing_.back() != '}') return;
  quote(key);
  text_ += ':';
}

void Json::quote(std::string_view text) {
  constexpr char32_t kReplacement = 0xfffd;
  text_ += '"';
  while (!text.empty()) {
    const auto [code, size] = first_character(text);
    if (code == '"' || code == '\\')
      (text_ += '\\') += static_cast<char>(code);
    else if (size == 0)
      escape(kReplacement);
    else if (!is_harmless(code) || (code >= 0x80 && !utf8_))
      escape(code);
    else
      text_ += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  text_ += '"';
}

void Json::escape(char32_t code) {
  constexpr char kHex[] = "0123456789abcdef";
  if (code > 0xffff) {  // two halves
    escape(0xd800 + ((code - 0x10000) >> 10));
    return escape(0xdc00 + (code & 0x3ff));
  }
  text_ += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text_ += kHex[code >> shift & 15];
}

}  // namespace stp
