// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/printable.h"

#include <array>
#include <cstdlib>

namespace stp {

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  char32_t code = lead & (0x7fU >> size);
  for (std::size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(at) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[size] || code > 0x10ffff || surrogate ? Character{} : Character{code, size};
}

bool is_harmless(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) {
    return code >= first && code <= last;
  };
  const bool control = code < 0x20 || within(0x7f, 0x9f);
  const bool direction = code == 0x61c || within(0x200e, 0x200f) || within(0x2028, 0x202e) ||
                         within(0x2066, 0x2069);  // and the two separators of lines
  return !control && !direction;
}

namespace {

bool names_utf8(std::string_view locale) {
  std::string plain;
  for (const char c : locale)
    if (c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return plain.find("utf8") != std::string::npos;
}

}  // namespace

bool terminal_reads_utf8() {
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return names_utf8(value);
  }
  return false;
}

std::string printable(std::string_view text, bool utf8) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    auto [code, size] = first_character(text);
    const bool shown = size != 0 && (utf8 || code < 0x80) && is_harmless(code);
    if (size == 0) size = 1;
    if (shown)
      out += text.substr(0, size);
    else
      out.append(size, '?');
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace stp
