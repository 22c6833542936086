// SPDX-License-Identifier: BSD-3-Clause
// What a service manager that started stpd is told, as systemd has it: datagrams to the socket
// that $NOTIFY_SOCKET names. Nothing happens where nobody asked.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "libst/os/unique_fd.h"

namespace stp::stpd {

class Notifier {
 public:
  Notifier();
  // Lines as sd_notify(3) has them, joined by '\n': "READY=1", "STATUS=...".
  void tell(const std::string& lines) const;
  // How often at least "WATCHDOG=1" is expected; nullopt: not at all.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  service::UniqueFd socket_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace stp::stpd
