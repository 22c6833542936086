// SPDX-License-Identifier: BSD-3-Clause
// A question to the kernel that needs a lock which any user of the host can hold for long, as that
// of all interfaces (RTNL): a thread of its own asks, and whoever wants to know goes on meanwhile.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "dpdk_port/link/start_thread.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::port {

// One thread at a time has it. Where asking throws, as without memory, the answer is Answer().
template <typename Answer>
class AskedAside {
 public:
  explicit AskedAside(std::function<Answer()> ask) : ask_(std::move(ask)) {}
  // Waits for an answer that is still to come.
  ~AskedAside() {
    if (thread_.joinable()) thread_.join();
  }
  AskedAside(const AskedAside&) = delete;
  AskedAside& operator=(const AskedAside&) = delete;

  // take() has not returned the answer to the last question yet.
  [[nodiscard]] bool is_asked() const { return asked_; }
  // Requires !is_asked(). Asks itself where no thread is to be had.
  void begin() {
    asked_ = true;
    if (!start()) run();
  }
  // The answer, if it is here within `patience`.
  std::optional<Answer> take(Time patience = 0) {
    if (!asked_ || !is_here(patience)) return std::nullopt;
    if (thread_.joinable()) thread_.join();
    asked_ = false;
    const Lock lock(mutex_);
    return std::exchange(answer_, std::nullopt);
  }

 private:
  // The thread handles no signal of the program.
  bool start() {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
      thread_ = start_thread([this] { run(); });
    } catch (const std::exception&) {  // no thread, or no memory for one
      started = false;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }
  void run() noexcept {
    Answer answer{};
    try {
      answer = ask_();
    } catch (...) {  // out of the thread it would end the program
      answer = Answer{};
    }
    const Lock lock(mutex_);
    answer_ = std::move(answer);
    here_.notify_one();
  }
  bool is_here(Time patience) {
    Lock lock(mutex_);
    if (answer_ || patience == 0) return answer_.has_value();
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience);
    while (!answer_ && lock.wait_until(here_, end)) {
    }
    return answer_.has_value();
  }

  const std::function<Answer()> ask_;
  bool asked_ = false;
  std::thread thread_;
  Mutex mutex_;
  std::condition_variable_any here_;
  std::optional<Answer> answer_ STP_GUARDED_BY(mutex_);
};

}  // namespace stp::port
