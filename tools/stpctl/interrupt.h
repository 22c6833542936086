// SPDX-License-Identifier: BSD-3-Clause
// Ctrl-C (SIGINT) and SIGTERM as a request to end. Only the main thread takes them, so any call in
// which it sleeps returns with EINTR.
#pragma once

#include <chrono>

namespace stp::stpctl {

// Before any thread starts: threads begin with these signals blocked.
void watch_for_interrupts();
// In the main thread, once the threads have started.
void let_interrupts_in();
bool interrupted();
// False: interrupted before `until`.
bool sleep_until(std::chrono::steady_clock::time_point until);

}  // namespace stp::stpctl
