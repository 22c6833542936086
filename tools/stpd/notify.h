// SPDX-License-Identifier: BSD-3-Clause
// Notifies the service manager that started stpd, in systemd's way: datagrams to the socket that
// $NOTIFY_SOCKET names. Without that variable, nothing is sent.
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
  // The longest interval between two "WATCHDOG=1"; nullopt: none is expected.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  service::UniqueFd socket_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace stp::stpd
