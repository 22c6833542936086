// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/drive_lock.h"

namespace stp::service {

void DriveLock::lock() {
  std::unique_lock guard(mutex_);
  auto const ticket = next_ticket_++;
  if (held_ || ticket != serving_) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    freed_.wait(guard, [&] { return !held_ && ticket == serving_; });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  ++serving_;
  held_ = true;
}

bool DriveLock::try_lock() {
  std::lock_guard guard(mutex_);
  if (held_ || next_ticket_ != serving_) return false;
  return held_ = true;
}

void DriveLock::unlock() {
  bool somebody_waits;
  {
    std::lock_guard guard(mutex_);
    held_ = false;
    somebody_waits = next_ticket_ != serving_;
  }
  // All of them: only the one whose turn it is goes on, and condition variables wake any.
  if (somebody_waits) freed_.notify_all();
}

}  // namespace stp::service
