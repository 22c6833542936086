// SPDX-License-Identifier: BSD-3-Clause
// A second thread for work that two can do at once.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace stp::files {

class Helper {
 public:
  Helper() = default;
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Calls `work` in this thread, and at the same time in the other one, unless that comes too late.
  // Returns when no call is under way. `work` takes its pieces itself, and must not throw.
  void share(const std::function<void()>& work);

 private:
  void run();

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  const std::function<void()>* offered_ = nullptr;
  bool busy_ = false, end_ = false;
  std::thread thread_;
};

}  // namespace stp::files
