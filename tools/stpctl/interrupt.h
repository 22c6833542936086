// SPDX-License-Identifier: BSD-3-Clause
// Handles Ctrl-C (SIGINT) and SIGTERM as requests to end. Only the main thread receives them, so
// any system call in which it sleeps returns with EINTR.
#pragma once

#include <chrono>

namespace stp::stpctl {

// Call before any thread starts: threads begin with these signals blocked.
void watch_for_interrupts();
// Call in the main thread, once the threads have started.
void let_interrupts_in();
bool interrupted();
// Sleeps until `until`. Returns false if it was interrupted before.
bool sleep_until(std::chrono::steady_clock::time_point until);

}  // namespace stp::stpctl
