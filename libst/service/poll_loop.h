// SPDX-License-Identifier: BSD-3-Clause
// The thread that drives a Service when nobody else does. In stpd it is the one that polls; inside
// a program it fills in whenever no caller is inside libst, so that progress never depends on the
// program's next call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "libst/service/heartbeat.h"
#include "libst/service/service.h"

namespace stp::service {

enum class PollPolicy {
  kBusy,      // a core of its own: never sleeps
  kAdaptive,  // sleeps when idle for longer than a round trip takes
  kInterrupt  // sleeps as soon as it is idle
};

// A sleeper is woken by clients, by its timers, and by frames where the link's driver has a
// descriptor for that (Port::wake_fd). Where it has none it looks after ever longer intervals, at
// least once in a millisecond, and kInterrupt behaves as kAdaptive does.
class PollLoop {
 public:
  // `cpus`: where the thread may run; none: wherever the process may.
  PollLoop(Service& service, PollPolicy policy, std::vector<unsigned> cpus = {});
  ~PollLoop();
  PollLoop(const PollLoop&) = delete;
  PollLoop& operator=(const PollLoop&) = delete;

  void start();
  void stop();  // waits for the thread; may be called again

  // While one lives, a caller drives the Service itself (under the drive lock) and the loop stays
  // away. The loop comes back kHandover after the last one has gone, unless a new one came:
  // programs that call often keep the link to themselves, and leaving costs no system call.
  class CallerScope {
   public:
    explicit CallerScope(PollLoop& loop) : loop_(loop) {
      loop_.calls_.fetch_add(kVisit | 1, std::memory_order_relaxed);
    }
    ~CallerScope() { loop_.calls_.fetch_sub(1, std::memory_order_relaxed); }
    CallerScope(const CallerScope&) = delete;
    CallerScope& operator=(const CallerScope&) = delete;

   private:
    PollLoop& loop_;
  };

  // For a caller that has ended its scope and is about to sleep: the loop comes back at once.
  void take_over();

  // Beats every turn, and several times a second when asleep.
  [[nodiscard]] const Heartbeat& heartbeat() const { return heartbeat_; }

  static constexpr Time kHandover = 100 * kMicrosecond;

 private:
  void run();
  void settle() const;
  [[nodiscard]] bool callers_came() const;
  void wait_for_callers();
  void drive();
  [[nodiscard]] bool may_sleep(Time idle_since) const;
  void sleep(std::unique_lock<DriveLock>& guard, Time interval);

  Service& service_;
  const PollPolicy policy_;
  const std::vector<unsigned> cpus_;
  const int wake_fd_;  // readable: frames have come; -1: nothing tells
  const Time longest_sleep_;
  const bool yields_;  // gives its core away each turn that it is idle
  Heartbeat heartbeat_;
  std::thread thread_;
  std::atomic<bool> stopping_{false}, sleeping_{false};
  // Visits so far, and below them how many callers are here.
  static constexpr unsigned kVisitShift = 32;
  static constexpr std::uint64_t kVisit = std::uint64_t{1} << kVisitShift;
  [[nodiscard]] std::uint64_t visits() const {
    return calls_.load(std::memory_order_relaxed) >> kVisitShift;
  }
  std::atomic<std::uint64_t> calls_{0};
  std::uint64_t seen_visits_ = 0;  // the loop's own: visits it has stayed away for
  std::mutex mutex_;
  std::condition_variable called_;
  bool taken_over_ = false;  // under mutex_
};

}  // namespace stp::service
