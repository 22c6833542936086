// SPDX-License-Identifier: BSD-3-Clause
// Tables of our pages, for tests that hold code against them.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace stp::test {

inline std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The cells of a line "| a | b |", without the spaces around them. None: it is no such line.
inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  const auto row = trimmed(line);
  if (!row.starts_with('|')) return cells;
  std::istringstream rest(row.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

}  // namespace stp::test
