// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/drive_lock.h"

namespace stp::service {

void DriveLock::wait(std::uint32_t ticket) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock guard(mutex_);
  called_.wait(guard, [&] { return serving_.load() == ticket; });
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

// All of them: only the one whose turn it is goes on, and condition variables wake any.
void DriveLock::call() {
  { std::lock_guard const guard(mutex_); }  // a waiter sleeps, or has not looked yet
  called_.notify_all();
}

}  // namespace stp::service
