// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/host_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace stp::port {

bool HostAddresses::has(const InternetAddress& address, unsigned interface, Time now) {
  // What is told while the list is read is news the next time.
  const bool changed = news_.look([](int) { return true; }, now);
  if (changed || !known_) read();
  InternetAddress wanted = address;
  wanted.port = 0;
  auto at = std::ranges::lower_bound(all_, std::pair(wanted, interface));
  return at != all_.end() && at->first == wanted && (interface == 0 || at->second == interface);
}

void HostAddresses::read() {
  ifaddrs* all = nullptr;
  known_ = ::getifaddrs(&all) == 0;
  if (!known_) return;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> held(all, &::freeifaddrs);
  all_.clear();
  const char* name = "";
  unsigned index = 0;
  for (const auto* at = all; at != nullptr; at = at->ifa_next) {
    const auto found = at->ifa_addr == nullptr ? std::nullopt : from_socket_address(at->ifa_addr);
    if (!found) continue;
    if (std::strcmp(name, at->ifa_name) != 0) index = ::if_nametoindex(name = at->ifa_name);
    all_.emplace_back(*found, index);
  }
  std::ranges::sort(all_);
}

}  // namespace stp::port
