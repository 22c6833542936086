// SPDX-License-Identifier: BSD-3-Clause
// Text forms of IPv4 and MAC addresses.
#include <array>
#include <charconv>
#include <cstdio>

#include "dpdk_port/link/link.h"

namespace stp::port {

std::optional<Ipv4> parse_ipv4(const std::string& text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  std::uint32_t value = 0;
  for (int octet = 0; octet < 4; ++octet) {
    if (octet > 0 && (at == end || *at++ != '.')) return std::nullopt;
    unsigned part = 0;
    const auto [stop, failure] = std::from_chars(at, end, part);
    // Zeros in front are refused: some programs read "010" as eight.
    if (failure != std::errc{} || part > 255 || (stop - at > 1 && *at == '0')) return std::nullopt;
    at = stop;
    value = value << 8 | part;
  }
  if (at != end) return std::nullopt;
  return Ipv4{value};
}

std::string to_string(Ipv4 address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (!text.empty()) text += '.';
    text += std::to_string(address.value >> shift & 0xff);
  }
  return text;
}

std::optional<MacAddr> parse_mac(const std::string& text) {
  constexpr std::size_t kLength = 6 * 3 - 1;
  if (text.size() != kLength) return std::nullopt;
  const char separator = text[2];
  if (separator != ':' && separator != '-') return std::nullopt;
  MacAddr mac;
  for (std::size_t i = 0; i < mac.octets.size(); ++i) {
    const char* const at = text.data() + 3 * i;
    if (i > 0 && at[-1] != separator) return std::nullopt;
    if (std::from_chars(at, at + 2, mac.octets[i], 16).ptr != at + 2) return std::nullopt;
  }
  return mac;
}

std::string to_string(const MacAddr& mac) {
  std::array<char, 18> text{};
  const auto& o = mac.octets;
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3],
                o[4], o[5]);
  return text.data();
}

}  // namespace stp::port
