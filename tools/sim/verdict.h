// SPDX-License-Identifier: BSD-3-Clause
// The failures of a run.
#pragma once

#include <string>
#include <vector>

namespace stp::sim {

class Verdict {
 public:
  void fail(std::string what) {
    if (failures_.size() < kKept) failures_.push_back(std::move(what));
  }
  void require(bool holds, const char* what) {
    if (!holds) fail(what);
  }
  [[nodiscard]] bool guilty() const { return !failures_.empty(); }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
  static constexpr std::size_t kKept = 16;  // later failures mostly follow from the first ones
  std::vector<std::string> failures_;
};

}  // namespace stp::sim
