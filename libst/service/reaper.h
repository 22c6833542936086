// SPDX-License-Identifier: BSD-3-Clause
// Lets go of things elsewhere. Unmapping a gigabyte takes milliseconds, and the thread that polls
// is often the one that learns that nobody needs it any more.
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
  ~Reaper();  // after the last thing given has gone
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // What keeps `thing` alive, and has `reaper` let go of it in the end.
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
