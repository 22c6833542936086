// SPDX-License-Identifier: BSD-3-Clause
// The lines of a scripted conversation. tests/conformance/scripts/README.md describes them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stp/types.h"

namespace stp::conversation {

// "+10ms < RC Reject I_Slots=64": words and assignments behind a verb.
struct Line {
  std::size_t number = 0;
  std::string text;
  Time pause = 0;
  std::string verb;                // "<", ">", "send", "recv", "listen", ...
  std::vector<std::string> words;  // without '='
  std::map<std::string, std::string> values;

  [[nodiscard]] bool has(const std::string& word) const;
};

// Throws std::runtime_error that names the line.
std::vector<Line> read_script(const std::string& path);

// The values of `$name`. A name without a value takes the first value that is compared with it.
class Variables {
 public:
  // The value of "12", "0x1f", "none" or "$name"; nullopt for a name without a value.
  [[nodiscard]] std::optional<std::uint64_t> value(const std::string& text) const;
  // Whether `seen` equals the value of `text`.
  bool matches(const std::string& text, std::uint64_t seen);
  void set(const std::string& name, std::uint64_t value) { values_[name] = value; }

 private:
  std::map<std::string, std::uint64_t> values_;
};

}  // namespace stp::conversation
