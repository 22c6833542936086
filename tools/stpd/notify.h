// SPDX-License-Identifier: BSD-3-Clause
// What the service manager that started stpd is told, and when.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "libst/os/unique_fd.h"

namespace stp::stpd {

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
  service::UniqueFd socket_;
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
