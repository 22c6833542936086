// SPDX-License-Identifier: BSD-3-Clause
// Bytes of the heap in use, as counted by the allocator of this build.
#pragma once

#include <cstddef>

namespace stp::test {

std::size_t live_bytes();

}  // namespace stp::test
