// SPDX-License-Identifier: BSD-3-Clause
// Shows a trace the datagrams of a link as packets of UDP, or of IP itself, which other programs
// can read. The kernel has built or taken apart the real headers, so these are made anew: as a
// sender makes them that never fragments. An Ethernet header stands in front, whose addresses are
// the names that the link has for the stations.
#pragma once

#include <cstddef>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/port.h"

namespace stp::port {

class PacketView {
 public:
  struct Station {
    MacAddr name;
    InternetAddress address;
  };
  enum class Way { kReceived, kSent };

  explicit PacketView(bool udp) : udp_(udp) {}

  // The data of the datagram is `head` followed by `rest`.
  // protocol: 13.1
  void show(Tap& tap, const Station& from, const Station& to, Bytes head, Bytes rest, Way way);

 private:
  void put_ip(const Station& from, const Station& to, std::size_t length);
  void put_udp(const Station& from, const Station& to, Bytes head, Bytes rest);

  const bool udp_;
  std::vector<std::byte> packet_;  // up to the end of `head`
};

}  // namespace stp::port
