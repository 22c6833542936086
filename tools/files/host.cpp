// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace stp::files {

std::string host_in(const std::string& station) {
  const std::string host = station.substr(0, station.rfind('/'));
  in6_addr six;
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (!brackets || ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) != 1)
    return host;
  if (IN6_IS_ADDR_LINKLOCAL(&six)) return host;
  std::fill(std::begin(six.s6_addr) + 8, std::end(six.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &six, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

}  // namespace stp::files
