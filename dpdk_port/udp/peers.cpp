// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/peers.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "stp/base/assert.h"

namespace stp::port {
namespace {

// The bit that marks an address as local, not assigned by a manufacturer.
constexpr std::uint8_t kLocal = 0x02, kGroup = 0x01;
// The second octet of names that are IPv4 addresses.
constexpr std::uint8_t kIsIpv4 = 0x04;

std::optional<Ipv4> ipv4_in(const MacAddr& name) {
  const auto& o = name.octets;
  if (o[0] != kLocal || o[1] != kIsIpv4) return std::nullopt;
  return Ipv4{static_cast<std::uint32_t>(name.to_u64())};
}

}  // namespace

// Of a name that is one.
std::optional<Peers::Route> Peers::way_in(const MacAddr& name) const {
  const auto address = InternetAddress::of(*ipv4_in(name), usual_port_);
  return address.is_host() ? std::optional(Route{address}) : std::nullopt;
}

MacAddr Peers::name_of(const InternetAddress& address, const OwnAddress& own) const {
  const auto four = address.ipv4();
  if (four && address.port == usual_port_ && own == OwnAddress{}) {
    constexpr std::uint64_t kPrefix = std::uint64_t{kLocal} << 40 | std::uint64_t{kIsIpv4} << 32;
    return MacAddr::from_u64(kPrefix | four->value);
  }
  std::array<std::uint64_t, 6> words{};
  std::memcpy(words.data(), address.ip.data(), address.ip.size());
  std::memcpy(&words[2], own.ip.data(), own.ip.size());
  words[4] = std::uint64_t{address.scope} << 16 | address.port;
  words[5] = own.scope;
  MacAddr name = MacAddr::from_u64(hash_(words));
  auto& first = name.octets[0];
  first = static_cast<std::uint8_t>((first & ~kGroup) | kLocal);
  if (ipv4_in(name)) first = kLocal | 0x80;
  return name;
}

std::optional<MacAddr> Peers::heard(const InternetAddress& from, Time now, const OwnAddress& own) {
  return note({from, own}, kStranger, now, nullptr);
}

std::optional<MacAddr> Peers::know(const InternetAddress& address, Time now, const OwnAddress& own,
                                   bool* is_new) {
  return note({address, own}, kNamed, now, is_new);
}

// protocol: 13.4, 13.7
std::optional<MacAddr> Peers::note(const Route& route, Kind kind, Time now, bool* is_new) {
  const InternetAddress& address = route.to;
  if (!address.is_host() || (address.port == 0) != (usual_port_ == 0)) return std::nullopt;
  const MacAddr name = name_of(address, route.from);
  if (is_new != nullptr) *is_new = false;
  if (ipv4_in(name)) return name;
  const std::uint64_t key = name.to_u64();
  const Lock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    entries_.emplace(key, enter(key, route, kind, now));
    if (is_new != nullptr) *is_new = true;
    return name;
  }
  if (found->second->route != route) return std::nullopt;
  if (is_new != nullptr) *is_new = found->second->kind < kind;
  use(found->second, kind, now);
  return name;
}

std::optional<Peers::Route> Peers::route_to(const MacAddr& name, bool connected, Time now) {
  if (ipv4_in(name)) return way_in(name);
  const Lock lock(mutex_);
  const auto found = entries_.find(name.to_u64());
  if (found == entries_.end()) return std::nullopt;
  use(found->second, connected ? kMet : kStranger, now);
  return found->second->route;
}

std::optional<Peers::Route> Peers::way_to(const MacAddr& name) const {
  if (ipv4_in(name)) return way_in(name);
  const Lock lock(mutex_);
  const auto found = entries_.find(name.to_u64());
  return found == entries_.end() ? std::nullopt : std::optional(found->second->route);
}

MacAddr Peers::source_of(const MacAddr& station) const {
  const auto address = look_up(station);
  if (!address) return station;
  if (const auto four = address->ipv4()) return name_of(InternetAddress::of(*four, usual_port_));
  std::uint64_t network = 0;
  std::memcpy(&network, address->ip.data(), sizeof network);
  constexpr std::uint64_t kNetwork = ~std::uint64_t{0};  // no single station has this word
  return MacAddr::from_u64(hash_(std::array{network, std::uint64_t{address->scope}, kNetwork}));
}

MacAddr Peers::network_of(const MacAddr& station) const {
  const auto address = look_up(station);
  if (!address) return station;
  // No single station has these words.
  constexpr std::uint64_t kOfIpv4 = ~std::uint64_t{1}, kOfIpv6 = ~std::uint64_t{2};
  if (const auto four = address->ipv4())
    return MacAddr::from_u64(hash_(std::array{std::uint64_t{four->value >> 16}, kOfIpv4}));
  std::uint32_t network = 0;
  std::memcpy(&network, address->ip.data(), sizeof network);
  const std::uint64_t scope = address->scope;
  return MacAddr::from_u64(hash_(std::array{std::uint64_t{network}, scope, kOfIpv6}));
}

std::size_t Peers::strangers() const {
  const Lock lock(mutex_);
  return orders_[kStranger].size();
}

std::size_t Peers::known() const {
  const Lock lock(mutex_);
  return orders_[kNamed].size() + orders_[kMet].size();
}

void Peers::make_room(Kind kind) {
  constexpr std::array<std::size_t, kKinds> kMost{kMostStrangers, kMostNamed, kMostMet};
  Order& order = orders_[kind];
  if (order.size() < kMost[kind]) return;
  entries_.erase(order.front().name);
  order.pop_front();
  ++displaced_;
}

Peers::Order::iterator Peers::enter(std::uint64_t name, const Route& route, Kind kind, Time now) {
  make_room(kind);
  return orders_[kind].insert(orders_[kind].end(), {name, route, now, kind});
}

void Peers::use(Order::iterator entry, Kind kind, Time now) {
  const bool promoted = kind > entry->kind;
  if (promoted) make_room(kind);
  if (!promoted && now - entry->used < kUse) return;
  Order& from = orders_[entry->kind];
  entry->kind = std::max(entry->kind, kind);
  entry->used = now;
  Order& to = orders_[entry->kind];
  to.splice(to.end(), from, entry);
  STP_ASSERT(
      entries_.size() == orders_[kStranger].size() + orders_[kNamed].size() + orders_[kMet].size(),
      "each entry is in one order");
}

namespace {

// Without a call for the names that there are.
bool is_same(const sockaddr_storage& a, const sockaddr_storage& b, socklen_t length) {
  if (length == sizeof(sockaddr_in)) return std::memcmp(&a, &b, sizeof(sockaddr_in)) == 0;
  if (length == sizeof(sockaddr_in6)) return std::memcmp(&a, &b, sizeof(sockaddr_in6)) == 0;
  return std::memcmp(&a, &b, length) == 0;
}

}  // namespace

const RecentSource::Station* RecentSource::heard(const sockaddr_storage& from, socklen_t length,
                                                 const OwnAddress& own, Time now) {
  length = std::min<socklen_t>(length, sizeof from);
  if (holds(now) && length == length_ && is_same(from, from_, length) && own == station_.own)
    return &station_;
  begin();
  const auto address = from_socket_address(reinterpret_cast<const sockaddr*>(&from));
  const auto name = address ? peers_.heard(*address, now, own) : std::nullopt;
  note(name.has_value(), now);
  if (!name) return nullptr;
  std::memcpy(&from_, &from, length);
  length_ = length;
  station_ = {*name, *address, own};
  return &station_;
}

RecentGoal::Address* RecentGoal::find(const MacAddr& station, bool connected, Time now) {
  if (holds(now) && station == station_ && connected <= connected_) return &address_;
  begin();
  const auto route = peers_.route_to(station, connected, now);
  if (route) {
    station_ = station;
    connected_ = connected;
    address_.address = route->to;
    address_.own = route->from;
    address_.length = to_socket_address(route->to, family_, address_.name);
  }
  const bool known = route && address_.length != 0;
  note(known, now);
  return known ? &address_ : nullptr;
}

}  // namespace stp::port
