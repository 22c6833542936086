// SPDX-License-Identifier: BSD-3-Clause
// How much of what happens is logged: by its level, and by a budget that keeps clients from filling
// the log. A program that connects and leaves ten thousand times a second gets only a few lines: in
// each interval the budget allows each user a number of lines and counts the others. The service
// logs the count when the interval ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>

namespace stp::service {

// By severity: a log at one level also shows all levels before it.
enum class LogLevel { kError, kWarning, kInfo, kDebug };

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

}  // namespace stp::service
