// SPDX-License-Identifier: BSD-3-Clause
// Maps in the pages of large regions on a thread of its own, a slice of each region in turn. So
// neither requests of other clients nor their smaller regions wait until the gigabytes of one
// client are mapped in. Thread-safe.
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
    std::uint64_t key = 0;  // identifies the client, which has one job at a time
    Request request{};
    std::shared_ptr<RegionMemory> memory;
    Reservation place;  // for the region
    int result = 0;
  };

  Populator();
  ~Populator();
  Populator(const Populator&) = delete;
  Populator& operator=(const Populator&) = delete;

  // An eventfd that becomes readable when a job is done. Call take() until it returns nullopt.
  [[nodiscard]] int done_fd() const { return done_fd_.get(); }
  void add(Job job);
  // Returns a job that is done, with its result; nullopt: there is none.
  std::optional<Job> take();
  // Drops the job of a client that has gone, at the latest after its present slice. take() does not
  // return it.
  void abandon(std::uint64_t key);

  // The Server maps in this many bytes itself: it takes no longer than another request.
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
