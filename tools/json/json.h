// SPDX-License-Identifier: BSD-3-Clause
// Writes JSON (RFC 8259), value by value, and sets the commas. The output is one line for programs;
// people can format it with jq or python3 -m json.tool. What of a text could control a terminal, or
// is not ASCII where the terminal reads no UTF-8, is escaped; bytes that are no UTF-8 are replaced.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stp/base/printable.h"

namespace stp {

class Json {
 public:
  // Inside an object each value has a key; inside an array none has.
  Json& object(std::string_view key = {}) { return open(key, '{'); }
  Json& array(std::string_view key = {}) { return open(key, '['); }
  Json& end();

  Json& value(std::string_view key, std::string_view text);
  Json& value(std::string_view key, const char* text) { return value(key, std::string_view(text)); }
  Json& value(std::string_view key, const std::string& text) {
    return value(key, std::string_view(text));
  }
  Json& value(std::string_view key, bool yes) { return raw(key, yes ? "true" : "false"); }
  Json& value(std::string_view key, double number);
  template <std::integral Number>
  Json& value(std::string_view key, Number number) {
    return raw(key, std::to_string(number));
  }
  // A number whose digits the caller has written.
  Json& number(std::string_view key, std::string_view digits) { return raw(key, digits); }
  Json& null(std::string_view key) { return raw(key, "null"); }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Json& open(std::string_view key, char bracket);
  Json& raw(std::string_view key, std::string_view text);
  void begin_value(std::string_view key);
  void quote(std::string_view text);
  void escape(char32_t code);

  const bool utf8_ = terminal_reads_utf8();
  std::string text_;
  std::vector<char> closing_;  // of what is open
  bool first_ = true;          // nothing stands yet in what is open
};

}  // namespace stp
