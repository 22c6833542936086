// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

namespace stp::port::memif {

// Does `work` in a thread that nobody waits for, and that handles no signal of the program. False:
// there is no thread to be had.
template <typename Work>
bool in_background(Work work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace stp::port::memif
