// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with the words of a benchmark's command line, which its usage names all of.
#pragma once

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "stp/base/suggestion.h"

namespace stp::bench {

// The options in a usage text, as "--sleep".
inline std::vector<std::string_view> options_in(std::string_view usage) {
  std::vector<std::string_view> options;
  for (std::size_t at = 0; (at = usage.find("--", at)) != std::string_view::npos;) {
    auto end = at + 2;
    while (end < usage.size() && (std::isalpha(usage[end]) != 0 || usage[end] == '-')) ++end;
    options.push_back(usage.substr(at, end - at));
    at = end;
  }
  return options;
}

// "": each word that looks like an option is one of the usage.
inline std::string wrong_option(const std::vector<std::string_view>& words,
                                std::string_view usage) {
  const auto options = options_in(usage);
  for (const auto word : words) {
    if (word.size() < 2 || word[0] != '-' || std::isdigit(word[1]) != 0) continue;
    const auto name = word.substr(0, word.find('='));
    bool known = false;
    for (const auto option : options) known = known || option == name;
    if (known) continue;
    const auto meant = similar_word(name, options);
    return "there is no option " + std::string(name) +
           (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?");
  }
  return {};
}

[[noreturn]] inline void refuse(const char* program, const std::string& what, const char* usage) {
  const std::string_view path(program);
  const auto name = path.substr(path.rfind('/') + 1);
  std::fprintf(stderr, "%.*s: %s\n%s", static_cast<int>(name.size()), name.data(), what.c_str(),
               usage);
  std::exit(2);
}

// 0: it is none, or not above 0.
inline double number_of(const char* text) {
  char* behind = nullptr;
  const auto number = std::strtod(text, &behind);
  return *behind == '\0' && number > 0 ? number : 0;
}

// Ends the program at an option that its usage, one line or more, does not name, and after --help
// or -h.
inline void hold_to(const char* usage, int argc, const char* const* argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  for (const auto word : words) {
    if (word != "--help" && word != "-h") continue;
    std::fputs(usage, stdout);
    std::exit(0);
  }
  if (const auto wrong = wrong_option(words, usage); !wrong.empty()) refuse(argv[0], wrong, usage);
}

}  // namespace stp::bench
