// SPDX-License-Identifier: BSD-3-Clause
// Reads tables of the documents, for tests that compare them with the code.
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

// The cells of a line "| a | b |", without surrounding spaces. Empty if it is not such a line.
inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  const auto row = trimmed(line);
  if (!row.starts_with('|')) return cells;
  std::istringstream rest(row.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

}  // namespace stp::test
