// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/slow_sockets.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace stp::service {

bool SlowSockets::replied(uid_t user, Time time, Time& last, Clock::time_point now) {
  const auto of_user = slow_.find(user);
  const auto before =
      std::max(std::exchange(last, time), of_user == slow_.end() ? Time(0) : of_user->second);
  const bool is_slow = time >= kSlow;
  if (is_slow)
    slow_[user] = time;
  else if (of_user != slow_.end())
    slow_.erase(of_user);
  took(user, std::min(time, before), now);
  return is_slow && costs_too_much(user, now);
}

void SlowSockets::took(uid_t user, Time time, Clock::time_point now) {
  if (time < kSlow || user == 0 || user == ::geteuid()) return;
  std::erase_if(costs_, [now](const auto& entry) { return entry.second.at(now).count() <= 0; });
  auto& cost = costs_[user];
  cost = {std::max(cost.at(now), Time(0)) + time, now};
}

bool SlowSockets::costs_too_much(uid_t user, Clock::time_point now) const {
  const auto at = costs_.find(user);
  return at != costs_.end() && at->second.at(now) > kMost;
}

SlowSockets::Time time_of_thread() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace stp::service
