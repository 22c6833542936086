// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/option_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <sstream>

#include "dpdk_port/link/cpus.h"
#include "tools/cli/app.h"

namespace stp::stpd {
namespace {

// Parses digits only: no sign, no blanks, nothing behind them.
template <typename T>
std::optional<T> whole_number(const std::string& text, int base = 10) {
  T number{};
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number, base);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Returns the exponent of the power of two that a unit stands for: "K", "kb" and "KiB" are 10.
std::optional<unsigned> unit_bits(std::string unit) {
  unit = cli::trimmed(unit);
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (unit.empty() || unit == "b") return 0;
  const auto at = std::string("kmgt").find(unit.front());
  const auto rest = unit.substr(1);
  if (at == std::string::npos || !(rest.empty() || rest == "b" || rest == "i" || rest == "ib"))
    return std::nullopt;
  return 10 * (static_cast<unsigned>(at) + 1);
}

unsigned parse_cpu(const std::string& text, const std::string& all) {
  const auto cpu = whole_number<unsigned>(text);
  if (!cpu || *cpu >= port::kMostCpus)
    refuse("--cpus " + all + ": write numbers and ranges, as 2 or 2-3,6");
  return *cpu;
}

}  // namespace

void refuse(const std::string& what) {
  throw cli::ValidationError(what);
}

std::uint64_t parse_count(const std::string& option, const std::string& text, std::uint64_t most) {
  const auto count = whole_number<std::uint64_t>(text);
  if (!count || *count > most)
    refuse(option + " " + text + ": write a whole number from 0 to " + std::to_string(most));
  return *count;
}

std::uint64_t parse_size(const std::string& option, const std::string& text) {
  const auto digits = text.find_first_not_of("0123456789");
  const auto number = whole_number<std::uint64_t>(text.substr(0, digits));
  const auto bits = unit_bits(digits == std::string::npos ? "" : text.substr(digits));
  if (!number || !bits || *number > ~std::uint64_t{0} >> *bits)
    refuse(option + " " + text + ": write a size, as 4096, 512KiB, 64MiB or 4GiB");
  return *number << *bits;
}

// Also accepts one part of a list, if the caller has split it at its commas already.
std::vector<unsigned> parse_cpus(const std::string& text) {
  const std::vector<unsigned> usable = port::usable_cpus();
  std::vector<unsigned> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = parse_cpu(part.substr(0, dash), text);
    const auto last = dash == std::string::npos ? first : parse_cpu(part.substr(dash + 1), text);
    if (last < first) refuse("--cpus " + text + ": " + part + " ends before it begins");
    for (auto cpu = first; cpu <= last; ++cpu) {
      if (!std::binary_search(usable.begin(), usable.end(), cpu))
        refuse("--cpus " + text + ": this process may not run on CPU " + std::to_string(cpu) +
               " (nproc tells how many there are)");
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

mode_t parse_mode(const std::string& text) {
  const auto mode = whole_number<unsigned>(text, 8);
  if (!mode || *mode > 0777) refuse("--socket-mode " + text + ": write three octal digits, as 660");
  return static_cast<mode_t>(*mode);
}

}  // namespace stp::stpd
