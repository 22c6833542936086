// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_wait.
#include "libst/udapl/core/evd.h"
#include "libst/udapl/core/ia.h"

namespace stp::udapl {

bool Evd::controlled() const {
  return completion_streams_.contains(kUnsignalled) || completion_streams_.contains(kSolicitedWait);
}

Result Evd::check_wait(int threshold) const {
  if (freed()) return Result::kInvalidHandle;
  if (threshold <= 0 || threshold > length_) return Result::kInvalidParameter;
  if (!waitable_ || waiter_ != nullptr) return Result::kInvalidState;
  return threshold != 1 && controlled() ? Result::kInvalidState : Result::kSuccess;
}

Result Evd::wait(std::uint32_t timeout, int threshold, Event& event, int& nmore) {
  const auto deadline = timeout == kForEver
                            ? Deadline::max()
                            : std::chrono::steady_clock::now() + std::chrono::microseconds(timeout);
  const auto keep = shared_from_this();
  Lock lock(ia().mutex());
  if (const auto result = check_wait(threshold); result != Result::kSuccess) return result;
  Progress::Waiter waiter;
  bool slept = false;  // events that are there before the first sleep need no notification
  const auto enough = [&] { return events_.size() >= static_cast<std::size_t>(threshold); };
  const auto done = [&] {
    const auto ready = enough() && (!slept || notified_);
    slept = true;
    return ready || freed() || !waitable_;
  };
  waiter_ = &waiter;
  threshold_ = threshold;
  notified_ = false;
  const auto error = ia().progress().wait(lock, waiter, done, deadline);
  waiter_ = nullptr;
  if (freed()) return Result::kAbort;
  nmore = static_cast<int>(events_.size());
  if (!waitable_) return Result::kInvalidState;
  if (error == -ETIMEDOUT) return Result::kTimeoutExpired;
  if (error != 0) return Result::kInterruptedCall;
  event = take();
  --nmore;
  return Result::kSuccess;
}

}  // namespace stp::udapl
