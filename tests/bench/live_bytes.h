// SPDX-License-Identifier: BSD-3-Clause
// What a program that links this has allocated with new and not deleted yet: exact, in any build.
#pragma once

#include <cstddef>

namespace stp::test {

std::size_t live_bytes();

}  // namespace stp::test
