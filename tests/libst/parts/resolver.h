// SPDX-License-Identifier: BSD-3-Clause
// What getaddrinfo() of this program gives, and how long it takes by the test's clock.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "stp/types.h"

namespace stp::test {

extern std::atomic<Time> resolver_takes;
// The addresses of the host several.test, in the resolver's order.
extern std::vector<std::string> several;
// How often it was asked for in both families.
extern std::atomic<unsigned> asked_for_both;

}  // namespace stp::test
