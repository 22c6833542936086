// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "stp/base/printable.h"

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

// Breaks a line at blanks, so that each part fits if its words do.
std::string broken(const std::string& line, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < line.size();) {
    const auto end = std::min(line.find(' ', at), line.size());
    const auto word = line.substr(at, end - at).substr(0, columns);
    const bool first = used == 0;
    if (!first && used + 1 + word.size() > columns) {
      out += '\n';
      used = 0;
    } else if (!first) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    at = end + 1;
  }
  return out;
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
  for (auto& cell : cells) cell = printable(cell);
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

std::string fit(const std::string& text, std::size_t columns) {
  if (columns == 0) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    if (line.size() <= columns) {
      out += line;
    } else {
      out += line.find(", ") != std::string::npos ? broken(line, columns) : line.substr(0, columns);
    }
    if (end < text.size()) out += '\n';
    at = end + 1;
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
