// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host, which are those in the network namespace of this process, and whether
// it still has the one that a link is bound to.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpdk_port/link/absence.h"
#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/internet_address.h"

namespace stp::port {

// What the kernel knows of this host's addresses and of the interfaces that have them.

// Bytes of the longest packet; 0: there is no such interface.
unsigned mtu_of(const std::string& interface);

// That of the interface with the longest packets that is up, but for the loopback one; 0: none.
unsigned most_mtu();

// The interface that has the address, whatever its port; "": none.
std::string interface_with(const InternetAddress& address);

// The interface that all hosts of its network are reached at by that IPv4 address; "": none.
std::string interface_with_broadcast(const InternetAddress& address);

// The first IPv4 address of an interface, or its first IPv6 one that is not link-local.
std::optional<InternetAddress> address_of(const std::string& interface);

// The address that packets to other networks come from. Without a way to them, that of any
// interface. AF_UNSPEC: that of IPv4, if there is one. nullopt: this host has none of the family.
std::optional<InternetAddress> usual_address(int family = AF_UNSPEC);

// Asks the kernel for the list only when something about interfaces has changed: on a host with
// thousands of addresses the list takes milliseconds. One thread at a time.
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

// Watches whether this host still has what a udp: link is bound to: its address, or its interface.
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
