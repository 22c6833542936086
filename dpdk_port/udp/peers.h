// SPDX-License-Identifier: BSD-3-Clause
// The names of stations behind UDP sockets, or of IP itself, which have no ports. A Node knows a
// station by 48 bits. An IPv4 address with the usual port is its own name: 02:04 and the four bytes
// of the address. Any other address has a keyed hash for a name, which is the same as long as the
// link is open, and which nobody else can compute; and this table says which address a hash belongs
// to.
//
// A host may have several addresses. What comes to another one than its usual one is as from
// another station: one that has only sent to that address, and gets what is sent to it from there.
// So nobody changes for others which address their peer hears this host at.
//
// Anybody may send from any number of addresses, and any user may name them, so the table is
// bounded. Strangers have a part of their own, as have stations that users have named and those
// that the Node has a connection with. In each the one that was not used for longest gives way: so
// neither strangers nor users who name many stations displace one that somebody is connected to. A
// station whose entry is gone gets the same name with its next datagram.
//
// Thread-safe: all shards of a link have one table.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

#include "dpdk_port/link/address.h"
#include "stp/base/keyed_hash.h"
#include "stp/base/mutex.h"
#include "stp/node/node.h"
#include "stp/types.h"
#include "stp/wire/layout.h"

namespace stp::port {

class Peers final : public Sources {
 public:
  static constexpr std::size_t kMostStrangers = 1'024, kMostNamed = 65'536, kMostMet = 65'536;
  // Uses of an entry within this time count as one.
  static constexpr Time kUse = kSecond;

  // `usual_port`: 0 if stations have none.
  explicit Peers(Random& random, std::uint16_t usual_port = wire::kUdpPort)
      : usual_port_(usual_port) {
    hash_.draw(random);
  }

  // `own`: the address of this host that the station is heard at.
  [[nodiscard]] MacAddr name_of(const InternetAddress& address, const OwnAddress& own = {}) const;

  // A datagram came from there. nullopt: no host can have that address, or its name belongs to
  // another one.
  std::optional<MacAddr> heard(const InternetAddress& from, Time now, const OwnAddress& own = {});
  // A user has named it. nullopt: as above. `is_new`, if it is somewhere: whether it took one of
  // the kMostNamed places, which another station may have lost for it.
  std::optional<MacAddr> know(const InternetAddress& address, Time now, const OwnAddress& own = {},
                              bool* is_new = nullptr);
  // Where to send what is for that station. nullopt: not known (any more). `connected`: what is
  // sent there is no answer to a stranger, so the Node has a connection with it.
  struct Route {
    InternetAddress to;
    OwnAddress from{};
    friend bool operator==(const Route&, const Route&) = default;
  };
  std::optional<Route> route_to(const MacAddr& name, bool connected, Time now);

  // All ports of an IPv4 address, and all addresses of an IPv6 network of 64 bits, are one source.
  // protocol: 13.14
  [[nodiscard]] MacAddr source_of(const MacAddr& station) const override;
  // IPv4 networks of 16 bits, and IPv6 networks of 32.
  // protocol: 13.14
  [[nodiscard]] MacAddr network_of(const MacAddr& station) const override;

  // As route_to(), for somebody who only looks: it counts as no use.
  [[nodiscard]] std::optional<Route> way_to(const MacAddr& name) const;
  [[nodiscard]] std::optional<InternetAddress> look_up(const MacAddr& name) const {
    const auto way = way_to(name);
    return way ? std::optional(way->to) : std::nullopt;
  }

  [[nodiscard]] std::size_t strangers() const;
  [[nodiscard]] std::size_t known() const;
  [[nodiscard]] std::uint64_t displaced() const {
    return displaced_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::optional<Route> way_in(const MacAddr& name) const;

  // A station never comes to be less.
  enum Kind : std::size_t { kStranger, kNamed, kMet, kKinds };
  struct Entry {
    std::uint64_t name;
    Route route;
    Time used;
    Kind kind;
  };
  using Order = std::list<Entry>;  // the one used longest ago is first

  void make_room(Kind kind) STP_REQUIRES(mutex_);
  Order::iterator enter(std::uint64_t name, const Route& route, Kind kind, Time now)
      STP_REQUIRES(mutex_);
  void use(Order::iterator entry, Kind kind, Time now) STP_REQUIRES(mutex_);
  std::optional<MacAddr> note(const Route& route, Kind kind, Time now, bool* is_new);

  const std::uint16_t usual_port_;
  KeyedHash hash_;
  std::atomic<std::uint64_t> displaced_{0};
  mutable Mutex mutex_;
  std::array<Order, kKinds> orders_ STP_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Order::iterator> entries_ STP_GUARDED_BY(mutex_);
};

// The station that a socket has last heard, or sent to. What the table of peers says of it holds
// for Peers::kUse, unless some station is displaced: so most datagrams need neither a hash nor the
// table, which other shards have as well.
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
    OwnAddress own{};
  };

  using RecentPeer::RecentPeer;
  // A datagram came from there to `own`: as Peers::heard(). nullptr in place of nullopt.
  const Station* heard(const sockaddr_storage& from, socklen_t length, const OwnAddress& own,
                       Time now);

 private:
  sockaddr_storage from_{};
  socklen_t length_ = 0;
  Station station_;
};

class RecentGoal : public RecentPeer {
 public:
  struct Address {
    InternetAddress address;
    OwnAddress own;
    sockaddr_storage name;
    socklen_t length;
  };

  RecentGoal(Peers& peers, int family) : RecentPeer(peers), family_(family) {}
  // As Peers::route_to(). nullptr: not known, or not to be reached by a socket of the family.
  Address* find(const MacAddr& station, bool connected, Time now);

 private:
  const int family_;
  MacAddr station_;
  bool connected_ = false;
  Address address_{};
};

}  // namespace stp::port
