// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of one interface, now: it tells of changes by rtnetlink, so that an
// interface that does not change costs one look into an empty socket. Without rtnetlink (a sandbox
// may forbid it) the interface is asked about in intervals.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"

namespace stp::port {

class InterfaceWatch {
 public:
  struct Facts {
    int index = 0;  // 0: there is no such interface
    bool up = false, running = false;
    unsigned mtu = 0;
    MacAddr mac;
    std::optional<Ipv4> address;  // its first IPv4 address
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  explicit InterfaceWatch(std::string name);
  ~InterfaceWatch();
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  // Reads what the kernel has told. True: facts() are others than before.
  bool look(Time now);
  // Asks the kernel, told or not. True as look().
  bool ask();
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // kUp, kDown, kNoCarrier or kGone.
  [[nodiscard]] LinkState state() const;

  // How often it is asked about where nothing tells.
  static constexpr Time kInterval = 100 * kMillisecond;

 private:
  bool told();
  [[nodiscard]] bool concerns_us(const void* messages, std::size_t size) const;

  const std::string name_;
  int asking_ = -1;  // a socket to ask on
  int news_ = -1;    // rtnetlink; -1: none
  Time ask_at_ = 0;  // without it
  Facts facts_;
};

}  // namespace stp::port
