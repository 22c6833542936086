// SPDX-License-Identifier: BSD-3-Clause
// Keeps clients from filling a log: a program that connects and leaves ten thousand times a second
// is told of in a few lines. Of each user so many are let through in an interval; the others are
// counted, and the count is told when the interval is over.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>

namespace stp::service {

class LogBudget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned kLines = 100;
  static constexpr std::chrono::seconds kInterval{10};

  // False: this line is not to be written.
  bool allows(uid_t user, Clock::time_point now) {
    // With so many users at once the rest of them share what there is for one.
    if (users_.size() >= kUsers && !users_.contains(user)) user = kTheRest;
    auto& of_user = users_.try_emplace(user, Lines{.begin = now}).first->second;
    if (of_user.written < kLines) return ++of_user.written, true;
    ++of_user.kept_back;
    return false;
  }
  // Calls tell(user, lines) for each whose interval is over and of whom lines were kept back.
  template <typename Tell>
  void end_intervals(Clock::time_point now, Tell&& tell) {
    std::erase_if(users_, [&](auto const& entry) {
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
