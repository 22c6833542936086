// SPDX-License-Identifier: BSD-3-Clause
// Ways of which a test says which are shared with others. A fixture has them for its Nodes, so they
// are a base of it, before the one with the Nodes.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "stp/node/node.h"

namespace stp::test {

class SomeWays : public SharedWays {
 public:
  bool is_shared(const MacAddr& station) override {
    asked.push_back(station);
    return shared.contains(station);
  }
  void tell_marks() override { tells_marks = true; }
  [[nodiscard]] auto asked_about(const MacAddr& station) const {
    return std::ranges::count(asked, station);
  }

  std::set<MacAddr> shared;
  std::vector<MacAddr> asked;
  bool tells_marks = false;
};

struct HasWays {
  SomeWays ways;
};

}  // namespace stp::test
