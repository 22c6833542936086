// SPDX-License-Identifier: BSD-3-Clause
// Links whose interface or address is not there: what they lack, whether they still have it, and
// the packet sockets that are kept for them.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/link.h"

namespace stp::port {

// Why a link cannot be opened yet: what it needs is not there, and may come.
struct Absence {
  LinkState state;      // kGone or kDown
  std::string trouble;  // with the remedy
};

// Of an interface. nullopt: it is there, and up.
inline std::optional<Absence> absence_of(const std::string& interface,
                                         const InterfaceWatch::Facts& facts) {
  if (facts.index == 0)
    return Absence{LinkState::kGone, "there is no interface " + interface +
                                         ": the link waits for it ('ip link' lists them)"};
  if (!facts.up)
    return Absence{LinkState::kDown, "the interface is down: ip link set " + interface + " up"};
  return std::nullopt;
}

inline std::optional<Absence> absence_of(const std::string& interface) {
  return absence_of(interface, InterfaceWatch(interface).facts());
}

// Of a link: the interface of iface: with driver=af_packet, which must be up; the address or
// interface of udp:; the folder for the socket of a memif: server. nullopt: all is there, or links
// of this kind do not wait.
std::optional<Absence> absence_of(const LinkConfig& link);

// Of an address that no socket of this host can be bound to: " is an address of eth0, ..." with the
// remedy, if that interface belongs to a VRF. "": no interface has it.
std::string hint_at_vrf(const InternetAddress& address);

// Why the link's address is none that it can have on this host, now or later; "": it can. What the
// text of the link alone says is checked by parse_link().
std::string unfit_here(const LinkConfig& link);

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

// Packet sockets kept for links whose interface is not there yet: a daemon opens them before it
// gives up the right to (CAP_NET_RAW). One that is not bound receives nothing. Thread-safe.

// Keeps one more. False: `error` says why it cannot be opened.
bool keep_packet_socket(std::string& error);
// Whether open_packet_socket() can succeed; errno if not.
bool may_open_packet_sockets();
// Returns a descriptor that is not bound, or -1 with errno.
int open_packet_socket();
// Closes one of open_packet_socket(). One that had been kept is kept again, without its rings,
// which must not be mapped.
void close_packet_socket(int fd);

}  // namespace stp::port
