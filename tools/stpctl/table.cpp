// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace stp::stpctl {
namespace {

std::string shorten(double value, double step) {
  constexpr const char* kUnits[] = {"", "K", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  for (; value >= step && unit + 1 < std::size(kUnits); value /= step) ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f%s" : "%.1f%s", value,
                kUnits[unit]);
  return text;
}

}  // namespace

Table::Table(std::vector<std::string> headings) {
  for (auto& heading : headings) {
    const auto number = heading.ends_with('>');
    if (number) heading.pop_back();
    numbers_.push_back(number);
  }
  rows_.push_back(std::move(headings));
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(numbers_.size());  // one cell per column, however many the caller has
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(numbers_.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string const fill(widths[i] - row[i].size(), ' ');
      line += numbers_[i] ? fill + row[i] : row[i] + fill;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string short_bytes(std::uint64_t bytes) {
  return shorten(static_cast<double>(bytes), 1'024);
}

std::string short_rate(double per_second) {
  return shorten(per_second, 1'000);
}

}  // namespace stp::stpctl
