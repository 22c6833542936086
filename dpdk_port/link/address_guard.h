// SPDX-License-Identifier: BSD-3-Clause
// Whether another station has our IPv4 address (RFC 5227). It asks for it when the link comes up,
// announces it where the link itself answers for it, and listens for others that use it. The
// address is in use meanwhile: whoever gave it to us is told, and decides. It does no IO.
#pragma once

#include <optional>

#include "dpdk_port/link/link.h"

namespace stp::port {

class AddressGuard {
 public:
  // `owns`: the link answers for the address, so that it asks and announces. False: the kernel
  // does; only what is heard counts, and then it asks whether that is over.
  explicit AddressGuard(bool owns) : owns_(owns) {}

  // Begins again: with another address (nullopt: none), or on a link that has come up.
  void begin(std::optional<Ipv4> address, Time now);

  enum class Speech { kNone, kProbe, kAnnouncement };
  // What is to be sent now. A probe asks for the address as nobody; an announcement as its owner.
  Speech due(Time now);
  // An ARP packet of a station with another MAC address than ours.
  void hear(const MacAddr& sender, Ipv4 sender_ip, Ipv4 target_ip, Time now);

  // Who else has it, as far as is known: the first that was heard.
  [[nodiscard]] std::optional<MacAddr> conflict() const { return other_; }

  // RFC 5227's constants; its random intervals are their middle here.
  static constexpr unsigned kProbes = 3, kAnnouncements = 2;
  static constexpr Time kProbeWait = 500 * kMillisecond;
  static constexpr Time kProbeInterval = 1500 * kMillisecond;
  static constexpr Time kAnnounceWait = 2 * kSecond, kAnnounceInterval = 2 * kSecond;
  static constexpr Time kDefendInterval = 10 * kSecond;
  // A conflict is over when so many questions in a row were left without an answer.
  static constexpr unsigned kUnanswered = 3;

 private:
  Speech next_of_beginning(Time now);

  const bool owns_;
  std::optional<Ipv4> address_;
  std::optional<MacAddr> other_;
  unsigned probes_ = 0, announcements_ = 0;  // that are still to come
  unsigned unanswered_ = 0;
  Time next_ = kNever;      // of the next speech
  Time defended_ = kNever;  // when the address was last defended; kNever: never
  bool defend_ = false;
};

}  // namespace stp::port
