// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/drive_lock.h"

namespace stp::service {

void DriveLock::wait(std::uint32_t ticket) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock guard(mutex_);
  called_.wait(guard, [&] { return serving_.load() == ticket; });
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

// Wakes all waiters: only the next ticket may continue, and notify_one() might wake another one.
void DriveLock::call() {
  { std::lock_guard const guard(mutex_); }  // each waiter sleeps now, or will still check serving_
  called_.notify_all();
}

}  // namespace stp::service
