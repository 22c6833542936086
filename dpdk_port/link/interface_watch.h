// SPDX-License-Identifier: BSD-3-Clause
// Watches the state of one interface. The kernel reports changes by rtnetlink, so an unchanged
// interface costs one read of an empty socket. Without rtnetlink (a sandbox may forbid it) this
// asks the kernel at intervals.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/interface_news.h"
#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"

namespace stp::port {

class InterfaceWatch {
 public:
  struct Facts {
    int index = 0;  // 0: no such interface
    bool up = false, running = false;
    unsigned mtu = 0;
    unsigned megabits = 0;  // speed, Mbit/s; 0: not known
    MacAddr mac;
    std::optional<Ipv4> address;  // its first IPv4 address
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  explicit InterfaceWatch(std::string name);
  ~InterfaceWatch();
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  // Reads the kernel's reports. True: facts() have changed.
  bool look(Time now);
  // Asks the kernel, even without a report. True as for look().
  bool ask();
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // kUp, kDown, kNoCarrier or kGone.
  [[nodiscard]] LinkState state() const;

 private:
  [[nodiscard]] unsigned ask_speed(const std::string& name) const;

  const std::string name_;
  int asking_ = -1;  // socket for questions
  InterfaceNews news_;
  Facts facts_;
};

}  // namespace stp::port
