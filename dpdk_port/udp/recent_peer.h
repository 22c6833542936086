// SPDX-License-Identifier: BSD-3-Clause
// The station that a socket has last heard, or sent to. What the table of peers says of it holds
// for Peers::kUse, unless some station is displaced: so most datagrams need neither a hash nor the
// table, which other shards have as well.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "dpdk_port/link/internet_address.h"
#include "dpdk_port/udp/peers.h"
#include "stp/types.h"

namespace stp::port {

class RecentPeer {
 public:
  explicit RecentPeer(Peers& peers) : peers_(peers) {}

 protected:
  [[nodiscard]] bool holds(Time now) const {
    return noted_ != kNever && now - noted_ < Peers::kUse && displaced_ == peers_.displaced();
  }
  // Before the table is asked, and after that.
  void begin() { displaced_ = peers_.displaced(); }
  void note(bool known, Time now) { noted_ = known ? now : kNever; }

  Peers& peers_;

 private:
  Time noted_ = kNever;  // kNever: there is none
  std::uint64_t displaced_ = 0;
};

class RecentSource : public RecentPeer {
 public:
  struct Station {
    MacAddr name;
    InternetAddress address;
  };

  using RecentPeer::RecentPeer;
  // A datagram came from there: as Peers::heard(). nullptr in place of nullopt.
  const Station* heard(const sockaddr_storage& from, socklen_t length, Time now);

 private:
  sockaddr_storage from_{};
  socklen_t length_ = 0;
  Station station_;
};

class RecentGoal : public RecentPeer {
 public:
  struct Address {
    InternetAddress address;
    sockaddr_storage name;
    socklen_t length;
  };

  RecentGoal(Peers& peers, int family) : RecentPeer(peers), family_(family) {}
  // As Peers::find(). nullptr: not known, or not to be reached by a socket of the family.
  Address* find(const MacAddr& station, bool connected, Time now);

 private:
  const int family_;
  MacAddr station_;
  bool connected_ = false;
  Address address_{};
};

}  // namespace stp::port
