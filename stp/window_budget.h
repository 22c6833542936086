// SPDX-License-Identifier: BSD-3-Clause
// Who says how much memory a Node may take to keep track of what is on its way to its users.
#pragma once

#include <cstdint>

namespace stp {

class WindowBudget {
 public:
  virtual ~WindowBudget() = default;
  // From now on `owner` (Node::open_endpoint) takes `bytes` in all, more or fewer than before.
  // False: more than it may, and it stays as it was. Fewer is never refused.
  virtual bool hold(std::uint64_t owner, std::uint64_t bytes) = 0;
};

}  // namespace stp
