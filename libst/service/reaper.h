// SPDX-License-Identifier: BSD-3-Clause
// Releases objects on a thread of its own. Unmapping a gigabyte takes milliseconds, and often the
// polling thread drops the last reference.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stp::service {

class Reaper {
 public:
  Reaper();
  ~Reaper();  // releases what it was given, then ends the thread
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Wraps `thing`: when the last copy of the result is destroyed, `reaper`'s thread releases it.
  // The copies keep the Reaper alive.
  static std::shared_ptr<void> guard(std::shared_ptr<Reaper> reaper, std::shared_ptr<void> thing);

 private:
  void give(std::shared_ptr<void> thing);
  void run();

  std::mutex mutex_;
  std::condition_variable given_;
  std::vector<std::shared_ptr<void>> things_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace stp::service
