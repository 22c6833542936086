// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/conversation/script.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace stp::conversation {
namespace {

Time parse_pause(const std::string& word) {
  std::size_t end = 0;
  const auto amount = std::stoull(word.substr(1), &end);
  const auto unit = word.substr(1 + end);
  if (unit == "us") return amount * kMicrosecond;
  if (unit == "ms") return amount * kMillisecond;
  if (unit == "s") return amount * kSecond;
  throw std::runtime_error("a time is +N with us, ms or s, not " + word);
}

}  // namespace

bool Line::has(const std::string& word) const {
  return std::ranges::find(words, word) != words.end();
}

std::vector<Line> read_script(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<Line> lines;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    std::istringstream words(text.substr(0, text.find('#')));
    Line line{.number = number, .text = text, .verb = {}, .words = {}, .values = {}};
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      if (line.verb.empty() && word[0] == '+')
        line.pause = parse_pause(word);
      else if (line.verb.empty())
        line.verb = word;
      else if (equals == std::string::npos)
        line.words.push_back(word);
      else
        line.values[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (!line.verb.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::optional<std::uint64_t> Variables::value(const std::string& text) const {
  if (text == "none") return 0xffffffff;
  if (text[0] != '$') return std::stoull(text, nullptr, 0);
  const auto known = values_.find(text.substr(1));
  if (known == values_.end()) return std::nullopt;
  return known->second;
}

bool Variables::matches(const std::string& text, std::uint64_t seen) {
  const auto wanted = value(text);
  if (!wanted) set(text.substr(1), seen);
  return !wanted || *wanted == seen;
}

}  // namespace stp::conversation
