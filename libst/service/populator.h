// SPDX-License-Identifier: BSD-3-Clause
// Makes the pages of large regions on a thread of its own, a slice of each in turn: neither the
// requests of other clients nor their smaller regions wait for a gigabyte of somebody's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"
#include "libst/service/region_memory.h"

namespace stp::service {

class Populator {
 public:
  struct Job {
    std::uint64_t key = 0;  // whose it is: one at a time each
    Request request{};
    std::shared_ptr<RegionMemory> memory;
    Reservation place;  // of the region
    int result = 0;
  };

  Populator();
  ~Populator();
  Populator(const Populator&) = delete;
  Populator& operator=(const Populator&) = delete;

  // An eventfd that is readable while a job is done and not taken.
  [[nodiscard]] int done_fd() const { return done_fd_.get(); }
  void add(Job job);
  // nullopt: none is done.
  std::optional<Job> take();
  // Its client has gone: nothing more is made for it, and it is never taken.
  void abandon(std::uint64_t key);

  // What takes about as long as another request may take: this much needs no other thread.
  static constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;

 private:
  static constexpr std::uint64_t kSlice = std::uint64_t{8} << 20;
  void run();

  UniqueFd done_fd_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Job> waiting_, done_;
  std::optional<std::uint64_t> working_;  // the key of the job in hand
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace stp::service
