// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/helper.h"

#include <system_error>
#include <utility>

namespace stp::files {

Helper::~Helper() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard const lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Helper::share(const std::function<void()>& work) {
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // no thread is to be had
    return work();
  }
  {
    std::lock_guard const lock(mutex_);
    offered_ = &work;
  }
  changed_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  offered_ = nullptr;
  changed_.wait(lock, [this] { return !busy_; });
}

void Helper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return offered_ != nullptr || end_; });
    if (end_) return;
    const auto& work = *std::exchange(offered_, nullptr);
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace stp::files
