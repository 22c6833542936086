// SPDX-License-Identifier: BSD-3-Clause
// The thread that drives a Service when no caller does. In stpd it polls all the time. Inside a
// program it polls only while no caller is inside libst, so progress never depends on the program's
// next call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "libst/service/absence.h"
#include "libst/service/attention.h"
#include "libst/service/heartbeat.h"
#include "libst/service/service.h"
#include "libst/service/sleep_budget.h"

namespace stp::service {

enum class PollPolicy {
  kBusy,      // never sleeps: needs a core of its own
  kAdaptive,  // sleeps after being idle for longer than a round trip
  kInterrupt  // sleeps as soon as it is idle
};

// Clients, timers and frames wake a sleeping loop; frames only if the link's driver has a
// descriptor for that (Port::wake_fd). Without one the loop looks for frames at increasing
// intervals: as often as about 2% of a core allow, and at least once per millisecond. kInterrupt
// then behaves as kAdaptive.
class PollLoop {
 public:
  // `cpus`: where the thread may run; empty: wherever the process may. `crowded`: others like it
  // run there, too, so that an idle one gives its CPU away.
  PollLoop(Service& service, PollPolicy policy, std::vector<unsigned> cpus = {},
           bool crowded = false);
  ~PollLoop();
  PollLoop(const PollLoop&) = delete;
  PollLoop& operator=(const PollLoop&) = delete;

  void start();
  void stop();  // waits for the thread; may be called again

  // A caller that drives the Service itself calls this each time, under the drive lock. The loop
  // stays away meanwhile. It returns kHandover after the last visit, or later if visits are
  // frequent: so programs that call often keep the link to themselves and need not announce that
  // they leave.
  void visited() {
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // The same, for a caller that only sends. It does not keep the loop away from a program that
  // leaves incoming frames to the loop (Attention).
  void posted() {
    visits_.store(visits_.load(std::memory_order_relaxed) + kPost, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t visits() const { return visits_.load(std::memory_order_relaxed); }

  // For a caller that is about to sleep: the loop takes over at once.
  void take_over();

  // A caller that has visited the Service leaves work in it. Unless there is another visit, the
  // loop does the work within a millisecond.
  void leave_to_loop() {
    if (left_.load(std::memory_order_relaxed)) return;
    left_ = true;
    if (far_away_) call();
  }
  // How often it has looked whether callers still come, and driven the Service where they did not.
  [[nodiscard]] std::uint32_t looks() const {
    return looks_around_.load(std::memory_order_relaxed);
  }

  // Beats every turn, and several times a second when asleep.
  [[nodiscard]] const Heartbeat& heartbeat() const { return heartbeat_; }

  static constexpr Time kHandover = 100 * kMicrosecond;
  // How long it stays away where something is left to it and callers keep coming.
  static constexpr Time kLongestLeft = 4 * kHandover;

 private:
  void run();
  void settle() const;
  void call();
  [[nodiscard]] bool callers_came() const {
    const auto visits = visits_.load(std::memory_order_relaxed);
    return attention_.on() ? visits % kPost != seen_visits_ % kPost : visits != seen_visits_;
  }
  void wait_for_callers();
  void drive();
  [[nodiscard]] std::uint64_t frames() const;
  [[nodiscard]] std::uint32_t posts() const {
    return static_cast<std::uint32_t>(visits_.load(std::memory_order_relaxed) / kPost);
  }
  bool turn();
  void rest(std::unique_lock<DriveLock>& guard, Time idle_since, Time& interval);
  void yield(std::unique_lock<DriveLock>& guard);
  [[nodiscard]] bool may_sleep(Time idle_since) const;
  Time longest_sleep();
  void sleep(std::unique_lock<DriveLock>& guard, Time interval);

  Service& service_;
  const PollPolicy policy_;
  const std::vector<unsigned> cpus_;
  const int wake_fd_;  // readable: frames have come; -1: nothing tells
  SleepBudget looks_;  // where nothing tells: the thread's own
  const bool yields_;  // gives its core away each turn that it is idle
  Heartbeat heartbeat_;
  std::atomic<std::uint32_t> looks_around_{0};
  std::thread thread_;
  std::atomic<bool> stopping_{false}, sleeping_{false};
  // Calls that look in the lower half, posts in the upper one.
  static constexpr std::uint64_t kPost = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> visits_{0};
  Attention attention_;
  std::uint64_t frames_seen_ = 0;  // as of its last turn, as are these
  std::uint32_t posts_seen_ = 0;
  Absence absence_{kHandover};
  // Sequentially consistent where one is stored and the other looked at: the loop does not stay
  // away for long without having seen that something is left to it.
  std::atomic<bool> left_{false}, far_away_{false};
  std::uint64_t seen_visits_ = 0;  // the loop's own: visits it has stayed away for
  std::mutex mutex_;
  std::condition_variable called_;
  bool taken_over_ = false;  // under mutex_
};

}  // namespace stp::service
