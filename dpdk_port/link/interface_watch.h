// SPDX-License-Identifier: BSD-3-Clause
// What the kernel tells of network interfaces without being asked each time: facts and the state of
// one, news of all, and the addresses of this host.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/link.h"
#include "stp/types.h"

namespace stp::port {

// Facts of the kernel about a network interface.
struct InterfaceFacts {
  MacAddr mac;
  unsigned mtu = 0;
  std::optional<Ipv4> address;  // its first IPv4 address
};

// The first IPv4 address of an interface, also one with a label. `name`: for systems without
// rtnetlink.
std::optional<Ipv4> first_address(const std::string& name, int index);

// False: `error` names the fault and the remedy: the interface is missing, down or not Ethernet, or
// this user may not open raw sockets.
bool look_up_interface(const std::string& name, InterfaceFacts& out, std::string& error);

// Tells that something about the interfaces of this host has changed: one of them, or an address.
// The kernel reports it by rtnetlink, so without news this costs one read of an empty socket.
// Without rtnetlink (a sandbox may forbid it) there is news at intervals.
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

// Watches the state of one interface. The kernel reports changes by rtnetlink, so an unchanged
// interface costs one read of an empty socket. Without rtnetlink (a sandbox may forbid it) this
// asks the kernel at intervals.
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

  // Reads the kernel's reports. True: facts() have changed.
  bool look(Time now);
  // Asks the kernel, even without a report. True as for look().
  bool ask();
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // kUp, kDown, kNoCarrier or kGone.
  [[nodiscard]] LinkState state() const;

 private:
  bool ask_driver(const std::string& name, void* command) const;
  [[nodiscard]] unsigned ask_speed(const std::string& name) const;
  [[nodiscard]] bool has_no_line(const std::string& name) const;

  const std::string name_;
  const InterfaceSocket asking_;
  InterfaceNews news_;
  Facts facts_;
};

// The addresses of this host. Asks the kernel for the list only when something about interfaces has
// changed: on a host with thousands of addresses the list takes milliseconds. One thread at a time.
class HostAddresses {
 public:
  // Whether that interface has the address, whatever its port; 0: any interface.
  bool has(const InternetAddress& address, unsigned interface, Time now);

 private:
  void read();

  InterfaceNews news_;
  bool known_ = false;
  std::vector<std::pair<InternetAddress, unsigned>> all_;  // in order; ports are 0
};

}  // namespace stp::port
