// SPDX-License-Identifier: BSD-3-Clause
// Detects another station with our IPv4 address (RFC 5227). It probes when the link comes up,
// announces the address if the link itself answers for it, and listens for other users of it. We
// use the address meanwhile: whoever assigned it is told of a conflict and decides. It does no IO.
#pragma once

#include <optional>

#include "dpdk_port/link/link.h"

namespace stp::port {

class AddressGuard {
 public:
  // `owns` true: the link answers for the address, so this probes and announces. False: the kernel
  // does; this only listens, and after a conflict probes whether it is over.
  explicit AddressGuard(bool owns) : owns_(owns) {}

  // Restarts: with another address (nullopt: none), or when the link has come up.
  void begin(std::optional<Ipv4> address, Time now);

  enum class Speech { kNone, kProbe, kAnnouncement };
  // What to send now. A probe asks for the address without a sender address; an announcement names
  // us as its owner.
  Speech due(Time now);
  // An ARP packet from a station with another MAC address than ours.
  void hear(const MacAddr& sender, Ipv4 sender_ip, Ipv4 target_ip, Time now);

  // The first other station heard that has the address, if any.
  [[nodiscard]] std::optional<MacAddr> conflict() const { return other_; }

  // RFC 5227's constants; fixed intervals, the middle of its random ones.
  static constexpr unsigned kProbes = 3, kAnnouncements = 2;
  static constexpr Time kProbeWait = 500 * kMillisecond;
  static constexpr Time kProbeInterval = 1500 * kMillisecond;
  static constexpr Time kAnnounceWait = 2 * kSecond, kAnnounceInterval = 2 * kSecond;
  static constexpr Time kDefendInterval = 10 * kSecond;
  // A conflict is over after this many probes in a row without an answer.
  static constexpr unsigned kUnanswered = 3;

 private:
  Speech next_of_beginning(Time now);

  const bool owns_;
  std::optional<Ipv4> address_;
  std::optional<MacAddr> other_;
  unsigned probes_ = 0, announcements_ = 0;  // still to be sent
  unsigned unanswered_ = 0;
  Time next_ = kNever;      // time of the next probe or announcement
  Time defended_ = kNever;  // when the address was last defended; kNever: never
  bool defend_ = false;
};

}  // namespace stp::port
