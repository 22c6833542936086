// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json/json.h"

#include <array>
#include <charconv>
#include <cmath>

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
  constexpr char kHex[] = "0123456789abcdef";
  text_ += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (code < 0x20) {
      text_ += "\\u00";
      text_ += kHex[code >> 4];
      text_ += kHex[code & 15];
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

}  // namespace stp
