// SPDX-License-Identifier: BSD-3-Clause
// --chmod: other permissions than those of the file, as chmod(1) and rsync(1) write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stp::files {

class ModeChanges {
 public:
  // "D755,F644" or "u=rwX,go-w": changes, separated by commas, each for directories (D), files (F)
  // or both. nullopt: it is none.
  static std::optional<ModeChanges> parse(std::string_view text);
  // The permission bits of a file that had `mode`.
  [[nodiscard]] std::uint16_t apply(std::uint16_t mode, bool is_directory) const;

 private:
  struct Change {
    bool directories = true, files = true;
    char operation = '=';         // or '+', '-'
    std::uint16_t who = 0777;     // the bits that it may change
    std::uint16_t bits = 0;       // for everybody
    bool execute_if_any = false;  // X: x, for directories and where somebody may execute already
  };
  static std::optional<Change> parse_change(std::string_view text);

  std::vector<Change> changes_;
};

}  // namespace stp::files
