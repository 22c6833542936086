// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/recent_peer.h"

#include <algorithm>
#include <cstring>

namespace stp::port {

const RecentSource::Station* RecentSource::heard(const sockaddr_storage& from, socklen_t length,
                                                 Time now) {
  length = std::min<socklen_t>(length, sizeof from);
  if (holds(now) && length == length_ && std::memcmp(&from, &from_, length) == 0) return &station_;
  begin();
  const auto address = from_socket_address(reinterpret_cast<const sockaddr*>(&from));
  const auto name = address ? peers_.heard(*address, now) : std::nullopt;
  note(name.has_value(), now);
  if (!name) return nullptr;
  std::memcpy(&from_, &from, length);
  length_ = length;
  station_ = {*name, *address};
  return &station_;
}

RecentGoal::Address* RecentGoal::find(const MacAddr& station, bool connected, Time now) {
  if (holds(now) && station == station_ && connected <= connected_) return &address_;
  begin();
  const auto address = peers_.find(station, connected, now);
  if (address) {
    station_ = station;
    connected_ = connected;
    address_.address = *address;
    address_.length = to_socket_address(*address, family_, address_.name);
  }
  const bool known = address && address_.length != 0;
  note(known, now);
  return known ? &address_ : nullptr;
}

}  // namespace stp::port
