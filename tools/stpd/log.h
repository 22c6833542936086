// SPDX-License-Identifier: BSD-3-Clause
// What stpd tells: its log, how many lines each user may cause, and what the service manager that
// started it is told. A line on stderr is text without a time, which that program may add; or text
// behind a time; or a JSON object with its own time. Thread-safe.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "libst/os/unique_fd.h"

namespace stp::stpd {

// By severity: a log at one level also shows all levels before it.
enum class LogLevel { kError, kWarning, kInfo, kDebug };

// Keeps clients from filling the log. A program that connects and leaves ten thousand times a
// second gets only a few lines: in each interval the budget allows each user a number of lines and
// counts the others. The daemon logs the count when the interval ends.
class LogBudget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned kLines = 100;
  static constexpr std::chrono::seconds kInterval{10};

  // False: do not write this line.
  bool allows(uid_t user, Clock::time_point now) {
    // Beyond kUsers users, the others share the budget of one.
    if (users_.size() >= kUsers && !users_.contains(user)) user = kTheRest;
    auto& of_user = users_.try_emplace(user, Lines{.begin = now}).first->second;
    if (of_user.written < kLines) return ++of_user.written, true;
    ++of_user.kept_back;
    return false;
  }
  // Calls tell(user, count) for each user whose interval has ended with lines suppressed.
  template <typename Tell>
  void end_intervals(Clock::time_point now, Tell&& tell) {
    std::erase_if(users_, [&](const auto& entry) {
      if (now - entry.second.begin < kInterval) return false;
      if (entry.second.kept_back != 0) tell(entry.first, entry.second.kept_back);
      return true;
    });
  }

  static constexpr uid_t kTheRest = ~uid_t{0};

 private:
  static constexpr std::size_t kUsers = 256;
  struct Lines {
    Clock::time_point begin;
    unsigned written = 0;
    std::uint64_t kept_back = 0;
  };
  std::map<uid_t, Lines> users_;
};

// Writes lines to a descriptor that may block (for example a pipe that nobody reads) on a separate
// thread, so a caller never waits. If the buffer is full, lines are dropped; their number is
// written once there is room.
class LogWriter {
 public:
  // Returns the line to write in place of the missing ones.
  using Missing = std::function<std::string(std::size_t lines)>;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;  // size of the buffer

  // The caller owns `file` and keeps it open until the process ends.
  LogWriter(int file, Missing missing);
  // Writes the remaining lines. If that takes longer than kFarewell, gives up the lines and the
  // thread.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void write(std::string line);
  // Waits until all lines are written. Returns false if that takes longer than `patience`.
  bool flush(std::chrono::milliseconds patience);

  static constexpr std::chrono::milliseconds kFarewell{1'000};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

enum class LogFormat { kText, kTimed, kJson };

// May be called while threads log.
void set_log(LogLevel least, LogFormat format);
// `link`: the link that the line is about; "": there is only one, or the line is about all.
void log(LogLevel level, const std::string& text, const std::string& link = {});

// While a LogThread exists, its thread writes the lines and no other thread waits for stderr.
// Before and after that, each thread writes its own lines. At most one may exist.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

 private:
  std::shared_ptr<LogWriter> writer_;
};

// Notifies the service manager that started stpd, in systemd's way: datagrams to the socket that
// $NOTIFY_SOCKET names. Without that variable, nothing is sent.
class Notifier {
 public:
  Notifier();
  // Lines as sd_notify(3) has them, joined by '\n': "READY=1", "STATUS=...".
  void tell(const std::string& lines) const;
  // The longest interval between two "WATCHDOG=1"; nullopt: none is expected.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  os::UniqueFd socket_;
  std::optional<std::chrono::microseconds> watchdog_;
};

// When to notify the service manager that stpd is alive: at half of the manager's interval, while
// every thread makes progress.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  Watchdog(std::chrono::microseconds interval, Time now)
      : pause_(std::max(interval / 2, kShortest)),
        between_looks_(std::max(pause_, kLeast)),
        notify_at_(now + pause_),
        look_at_(now + between_looks_) {}

  // Returns whether it is time to notify the manager and stpd is alive. `is_alive` returns whether
  // every thread has made progress since it was called last.
  template <typename IsAlive>
  bool is_due(Time now, IsAlive&& is_alive) {
    if (now < notify_at_) return false;
    notify_at_ = now + pause_;
    if (now >= look_at_) {
      look_at_ = now + between_looks_;
      alive_ = is_alive();
    }
    return alive_;
  }
  [[nodiscard]] Time next() const { return notify_at_; }

 private:
  static constexpr std::chrono::microseconds kShortest{1'000};
  // Threads beat at least once per second. After a shorter time a sleeping one looks stuck.
  static constexpr std::chrono::microseconds kLeast{1'500'000};

  std::chrono::microseconds pause_, between_looks_;
  Time notify_at_, look_at_;
  bool alive_ = true;  // when looked last
};

}  // namespace stp::stpd
