// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/raw_sockets.h"

#include <arpa/inet.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>

namespace stp::port {
namespace {

constexpr std::size_t kWord = 8;  // digits of 32 bits

// "0100007F:0076", or four such words before the colon, in the byte order of the host. nullopt: of
// another protocol.
std::optional<InternetAddress> local_address(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon % kWord != 0) return std::nullopt;
  if (std::stoul(text.substr(colon + 1), nullptr, 16) != kStpProtocol) return std::nullopt;
  InternetAddress out;
  for (std::size_t at = 0; at < colon && at / 2 < out.ip.size(); at += kWord) {
    const auto word = static_cast<std::uint32_t>(std::stoul(text.substr(at, kWord), nullptr, 16));
    if (colon == kWord) return InternetAddress::of(Ipv4{ntohl(word)}, 0);
    std::memcpy(&out.ip[at / 2], &word, sizeof word);
  }
  return out;
}

}  // namespace

unsigned raw_sockets_at(const InternetAddress& address, std::istream& list) {
  unsigned count = 0;
  std::string line;
  std::getline(list, line);  // what the columns are
  std::string slot, local;
  while (list >> slot >> local) {
    const auto found = local_address(local);
    if (found && (found->is_unspecified() || address.is_unspecified() || found->ip == address.ip))
      ++count;
    std::getline(list, line);
  }
  return count;
}

unsigned raw_sockets_at(const InternetAddress& address) {
  std::ifstream list(std::string("/proc/thread-self/net/raw") + (address.ipv4() ? "" : "6"));
  return raw_sockets_at(address, list);
}

}  // namespace stp::port
