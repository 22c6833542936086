// SPDX-License-Identifier: BSD-3-Clause
// Tells that something about the interfaces of this host has changed: one of them, or an address.
// The kernel reports it by rtnetlink, so without news this costs one read of an empty socket.
// Without rtnetlink (a sandbox may forbid it) there is news at intervals.
#pragma once

#include <functional>

#include "stp/types.h"

namespace stp::port {

class InterfaceNews {
 public:
  InterfaceNews();
  ~InterfaceNews();
  InterfaceNews(const InterfaceNews&) = delete;
  InterfaceNews& operator=(const InterfaceNews&) = delete;

  // True: there is news of an interface whose index `concerns`, or some was lost.
  bool look(const std::function<bool(int)>& concerns, Time now);

  // The interval without reports.
  static constexpr Time kInterval = 100 * kMillisecond;

 private:
  [[nodiscard]] bool told(const std::function<bool(int)>& concerns) const;

  const int fd_;  // -1: no rtnetlink
  Time ask_at_ = 0;
};

}  // namespace stp::port
