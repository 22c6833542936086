// SPDX-License-Identifier: BSD-3-Clause
// Owns the background thread of a domain. It promises that somebody makes progress: the thread does
// it while no thread of the program does, and stays away from programs that poll in a loop or wait,
// because each of its turns takes the core from them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "libst/client/backend.h"
#include "libst/service/absence.h"

namespace stp::managed {

class Background {
 public:
  // The longest sleep of the thread.
  static constexpr Time kLongestSleep = 100 * kMillisecond;

  explicit Background(client::Backend& backend) : backend_(backend) {}

  // `turn` makes progress. It returns when the next one is due at the latest; 0: at once.
  void start(std::function<Time()> turn);
  // Ends the thread after its present turn.
  void stop();

  // A call of the program has made progress. The caller has the domain's mutex.
  void visited() {
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // A call that stays for a while, and makes all progress meanwhile.
  class Visit {
   public:
    explicit Visit(Background& background) : background_(background) {
      background_.visitors_.fetch_add(1);
    }
    ~Visit() { background_.leave(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    Background& background_;
  };
  // The program makes no progress for a while: the thread continues now.
  void take_over();

 private:
  // The thread comes back this long after the last caller has gone, unless it is called: so
  // programs that poll in a loop keep the domain to themselves.
  static constexpr Time kHandover = 200 * kMicrosecond;

  void run();
  void leave();
  bool stay_away(bool visited);
  [[nodiscard]] std::atomic<std::uint32_t>& events_word() const { return backend_.page().events; }
  void sleep_until(std::uint32_t seen, Time deadline);

  client::Backend& backend_;
  std::function<Time()> turn_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> visits_{0}, visitors_{0};
  std::atomic<bool> far_away_{false};  // until a visitor leaves
  service::Absence absence_{kHandover};
  std::mutex mutex_;
  std::condition_variable called_;
  bool taken_over_ = false;  // under mutex_
};

}  // namespace stp::managed
