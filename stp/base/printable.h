// SPDX-License-Identifier: BSD-3-Clause
// Text of others on its way to a terminal or a log: names of files and of programs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stp {

// Whether the terminal is one that reads UTF-8, according to LC_ALL, LC_CTYPE and LANG.
bool terminal_reads_utf8();

struct Character {
  char32_t code = 0;
  std::size_t size = 0;  // bytes; 0: they are no UTF-8
};
// The first one of a text that is not empty.
Character first_character(std::string_view text);
// False for control characters, line separators, and characters that change the direction of the
// text.
bool is_harmless(char32_t code);

// The text with '?' for whatever could control a terminal or deceive its reader: control
// characters, line separators, characters that change the direction of the text, and bytes that are
// no UTF-8. If the terminal does not read `utf8`, for every byte that is not ASCII.
std::string printable(std::string_view text, bool utf8 = terminal_reads_utf8());

}  // namespace stp
