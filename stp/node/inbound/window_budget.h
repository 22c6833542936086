// SPDX-License-Identifier: BSD-3-Clause
// Limits the memory that a Node uses to track data on its way to its users.
#pragma once

#include <cstdint>

namespace stp {

class WindowBudget {
 public:
  virtual ~WindowBudget() = default;
  // A purse of `owner` (Node::open_endpoint) changes its share from `before` to `bytes`. An owner
  // may have several purses. False: over the owner's limit, nothing changed. A smaller share is
  // never refused.
  virtual bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) = 0;
};

}  // namespace stp
