// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/private_data.h"

#include <array>
#include <cstring>

namespace stp::udapl {
namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'D'}, std::byte{'A'}, std::byte{'T'},
                                          std::byte{1}};

}  // namespace

std::vector<std::byte> pack(std::uint32_t ipv4, std::span<const std::byte> bytes) {
  std::vector<std::byte> packed(kMagic.begin(), kMagic.end());
  for (int shift = 24; shift >= 0; shift -= 8)
    packed.push_back(static_cast<std::byte>(ipv4 >> shift));
  packed.insert(packed.end(), bytes.begin(), bytes.end());
  return packed;
}

std::optional<PrivateData> unpack(stm_connection_t connection) {
  std::array<std::byte, STM_PRIVATE_DATA> data;
  auto const size = stm_private_data(connection, data.data(), data.size());
  if (size < static_cast<int>(kPrivateHead) ||
      std::memcmp(data.data(), kMagic.data(), kMagic.size()) != 0)
    return std::nullopt;
  PrivateData out;
  for (auto at = kMagic.size(); at < kPrivateHead; ++at)
    out.ipv4 = out.ipv4 << 8 | std::to_integer<std::uint32_t>(data[at]);
  out.bytes.assign(data.begin() + kPrivateHead, data.begin() + size);
  return out;
}

}  // namespace stp::udapl
