// SPDX-License-Identifier: BSD-3-Clause
// Releases objects in another thread. Unmapping a gigabyte takes milliseconds, and often the
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
  ~Reaper();  // runs after the last object given to it is released
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Wraps `thing`: when the last copy of the result goes, `reaper` releases it.
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
