// SPDX-License-Identifier: BSD-3-Clause
// Who says how much memory a Node may take to keep track of what is on its way to its users.
#pragma once

#include <cstdint>

namespace stp {

class WindowBudget {
 public:
  virtual ~WindowBudget() = default;
  // From now on one purse of `owner` (Node::open_endpoint), who may have several, takes `bytes` and
  // not `before`, more or fewer. False: more than its owner may, and it stays as it was. Fewer is
  // never refused.
  virtual bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) = 0;
};

}  // namespace stp
