// SPDX-License-Identifier: BSD-3-Clause
// Sums over the users of budgets.
#pragma once

#include "libst/host/budgets.h"

namespace stp::host {

// How many users have a program or hold a reservation.
inline std::size_t users(const Budgets& budgets) {
  std::size_t count = 0;
  for (auto user = budgets.after({}); user; user = budgets.after(user->uid)) ++count;
  return count;
}

// What all users together have of a resource.
inline std::uint64_t used(const Budgets& budgets, Resource resource) {
  std::uint64_t sum = 0;
  for (auto user = budgets.after({}); user; user = budgets.after(user->uid))
    sum += user->used[static_cast<std::size_t>(resource)];
  return sum;
}

}  // namespace stp::host
