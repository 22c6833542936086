// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/suggestion.h"

#include <algorithm>
#include <numeric>

namespace stp {
namespace {

constexpr std::size_t kLongestWord = 32;  // bounds the work for a text of any length

std::string in_small_letters(std::string_view word) {
  std::string small(word);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

// How many letters have to be changed, taken out, put in or swapped with the next one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string_view similar_word(std::string_view word, const std::vector<std::string_view>& words) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string written = in_small_letters(word);
  std::size_t least = (word.size() < 5 ? 1 : 2) + 1;
  std::string_view best;
  for (const std::string_view each : words) {
    const std::size_t far = distance(written, each);
    if (far < least) {
      least = far;
      best = each;
    } else if (far == least) {
      best = {};
    }
  }
  return best;
}

}  // namespace stp
