// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/private_data.h"

#include <array>
#include <charconv>
#include <cstring>

namespace stp::udapl {
namespace {

// Followed by a version, which says whether a qualifier follows the address.
constexpr std::array<std::byte, 3> kMagic{std::byte{'D'}, std::byte{'A'}, std::byte{'T'}};
constexpr std::byte kPlain{1}, kWithQualifier{2};

void append(std::vector<std::byte>& out, std::uint64_t value, int bits) {
  for (int shift = bits - 8; shift >= 0; shift -= 8)
    out.push_back(static_cast<std::byte>(value >> shift));
}

std::uint64_t read(std::span<const std::byte> from) {
  std::uint64_t value = 0;
  for (const auto byte : from) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

std::vector<std::byte> head(std::byte version, std::uint32_t ipv4) {
  std::vector<std::byte> made(kMagic.begin(), kMagic.end());
  made.push_back(version);
  append(made, ipv4, 32);
  return made;
}

}  // namespace

std::vector<std::byte> pack(std::uint32_t ipv4, std::span<const std::byte> bytes) {
  auto packed = head(kPlain, ipv4);
  packed.insert(packed.end(), bytes.begin(), bytes.end());
  return packed;
}

std::vector<std::byte> pack_request(std::uint32_t ipv4, std::uint64_t conn_qual,
                                    std::span<const std::byte> bytes) {
  if (is_port(conn_qual)) return pack(ipv4, bytes);
  auto packed = head(kWithQualifier, ipv4);
  append(packed, conn_qual, 64);
  packed.insert(packed.end(), bytes.begin(), bytes.end());
  return packed;
}

std::optional<PrivateData> unpack(stm_connection_t connection) {
  std::array<std::byte, STM_PRIVATE_DATA> data;
  const auto size = stm_private_data(connection, data.data(), data.size());
  if (size < static_cast<int>(kPrivateHead) ||
      std::memcmp(data.data(), kMagic.data(), kMagic.size()) != 0)
    return std::nullopt;
  auto rest = std::span(data).first(static_cast<std::size_t>(size)).subspan(kMagic.size());
  const auto version = rest.front();
  PrivateData out;
  out.ipv4 = static_cast<std::uint32_t>(read(rest.subspan(1, 4)));
  rest = rest.subspan(5);
  if (version == kWithQualifier && rest.size() >= kQualifierSize) {
    out.conn_qual = read(rest.first(kQualifierSize));
    rest = rest.subspan(kQualifierSize);
  } else if (version != kPlain) {
    return std::nullopt;
  }
  out.bytes.assign(rest.begin(), rest.end());
  return out;
}

std::uint16_t udp_port_in(const std::string& host) {
  std::uint16_t port = 0;
  const auto slash = host.rfind('/');
  if (slash != std::string::npos)
    std::from_chars(host.data() + slash + 1, host.data() + host.size(), port);
  return port;
}

std::uint16_t peer_udp_port_of(stm_connection_t connection) {
  stm_peer_info_t peer{};
  peer.size = sizeof peer;
  return stm_peer_query(connection, &peer) == 0 ? udp_port_in(peer.address) : std::uint16_t{0};
}

}  // namespace stp::udapl
