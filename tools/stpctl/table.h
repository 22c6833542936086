// SPDX-License-Identifier: BSD-3-Clause
// Formats columns for people: text aligned left, numbers aligned right, as wide as their content.
// Names in cells are made harmless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stp::stpctl {

class Table {
 public:
  // A heading that ends in '>' marks a column of numbers.
  explicit Table(std::vector<std::string> headings);
  void row(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }

 private:
  std::vector<bool> numbers_;
  std::vector<std::vector<std::string>> rows_;
};

// The text on a screen with that many columns; 0: any number. A line with ", " is a sentence, and
// continues on the next line; another one is a row, and ends at the edge.
std::string fit(const std::string& text, std::size_t columns);

// 1536 -> "1.5K": three significant digits, in powers of 1024 (bytes) or of 1000 (rates).
std::string short_bytes(std::uint64_t bytes);
std::string short_rate(double per_second);

}  // namespace stp::stpctl
