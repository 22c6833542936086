// SPDX-License-Identifier: BSD-3-Clause
// Watches whether this host still has what a udp: link is bound to: its address, or its interface.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/absence.h"
#include "dpdk_port/link/interface_news.h"
#include "dpdk_port/link/internet_address.h"

namespace stp::port {

class AddressWatch {
 public:
  // A link at all addresses of the host lacks none.
  explicit AddressWatch(LinkConfig config);

  // Looks every kInterval, if something has changed at all. True: absence() or index() has changed.
  bool look(Time now);
  // kGone, kDown or kNoCarrier, with the remedy. nullopt: all is there.
  [[nodiscard]] const std::optional<Absence>& absence() const { return absence_; }
  // Of the interface that the link names; 0: it names none, or there is no such interface.
  [[nodiscard]] unsigned index() const { return index_; }

  static constexpr Time kInterval = 50 * kMillisecond;

 private:
  void ask();
  [[nodiscard]] std::optional<Absence> absence_now() const;

  const LinkConfig config_;
  std::optional<InternetAddress> address_;  // nullopt: the link names an interface
  std::string interface_;                   // that the link names; "": none
  InterfaceNews news_;
  Time look_at_ = 0;
  std::optional<Absence> absence_;
  unsigned index_ = 0;
};

}  // namespace stp::port
