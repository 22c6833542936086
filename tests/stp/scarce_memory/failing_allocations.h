// SPDX-License-Identifier: BSD-3-Clause
// The operator new of this program fails on demand.
#pragma once

namespace stp::test {

// This many allocations of this thread succeed, then one fails. Negative: none fails.
inline thread_local long allocations_left = -1;
// As in stpd, which keeps memory in reserve: only what is Refusable fails.
inline thread_local bool some_is_kept = false;

}  // namespace stp::test
