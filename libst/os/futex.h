// SPDX-License-Identifier: BSD-3-Clause
// Sleeping on a word, which may be in memory shared between processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace stp::os {

// Wakes up to `most` threads that sleep on `word`. A program can let any number of threads sleep on
// a word that it shares, and each of them costs who wakes it: so a service wakes one, and that one
// wakes the others (libst/client/wait.h).
inline void futex_wake(std::atomic<std::uint32_t>& word, int most) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, most, nullptr, nullptr,
            0);
}

// Sleeps while `word` is `seen`, until it is woken. It may return earlier.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, nullptr, nullptr,
            0);
}

}  // namespace stp::os
