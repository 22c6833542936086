// SPDX-License-Identifier: BSD-3-Clause
// The names of stations behind UDP sockets. A Node knows a station by 48 bits. An IPv4 address with
// the registered port is its own name: 02:04 and the four bytes of the address. Any other address
// has a keyed hash for a name, which is the same as long as the link is open, and which nobody else
// can compute; and this table says which address a hash belongs to.
//
// Anybody may send from any number of addresses, so the table is bounded. Strangers have a part of
// their own, where the one that was silent for longest gives way: they never displace a station
// that the Node has a connection with, or that a user has named. A station whose entry is gone gets
// the same name with its next datagram.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

#include "dpdk_port/link/internet_address.h"
#include "stp/base/keyed_hash.h"
#include "stp/types.h"

namespace stp::port {

// protocol: 13.2
inline constexpr std::uint16_t kUdpPort = 8181;

class Peers {
 public:
  static constexpr std::size_t kMostStrangers = 1'024, kMostKnown = 65'536;
  // Uses of an entry within this time count as one.
  static constexpr Time kUse = kSecond;

  explicit Peers(Random& random) { hash_.draw(random); }

  [[nodiscard]] MacAddr name_of(const InternetAddress& address) const;

  // A datagram came from there. nullopt: no host can have that address, or its name belongs to
  // another one.
  std::optional<MacAddr> heard(const InternetAddress& from, Time now);
  // A user has named it. nullopt: as above.
  std::optional<MacAddr> know(const InternetAddress& address, Time now);
  // Where to send what is for that station. nullopt: not known (any more). `connected`: what is
  // sent there is no answer to a stranger, so the Node has a connection with it.
  std::optional<InternetAddress> find(const MacAddr& name, bool connected, Time now);

  [[nodiscard]] std::size_t strangers() const { return strangers_.size(); }
  [[nodiscard]] std::size_t known() const { return known_.size(); }
  [[nodiscard]] std::uint64_t displaced() const { return displaced_; }

 private:
  struct Entry {
    std::uint64_t name;
    InternetAddress address;
    Time used;
    bool is_known;
  };
  using Order = std::list<Entry>;  // the one used longest ago is first

  Order& order_of(bool known) { return known ? known_ : strangers_; }
  Order::iterator enter(std::uint64_t name, const InternetAddress& address, bool known, Time now);
  void use(Order::iterator entry, bool known, Time now);
  std::optional<MacAddr> note(const InternetAddress& address, bool known, Time now);

  KeyedHash hash_;
  Order strangers_, known_;
  std::unordered_map<std::uint64_t, Order::iterator> entries_;
  std::uint64_t displaced_ = 0;
};

}  // namespace stp::port
