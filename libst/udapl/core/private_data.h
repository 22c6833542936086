// SPDX-License-Identifier: BSD-3-Clause
// The private data of DAT inside that of the managed API: behind a head that names the layer and
// tells who asks, which a DAT consumer may want to know.
#pragma once

#include <stp/managed.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stp::udapl {

inline constexpr std::size_t kPrivateHead = 8, kQualifierSize = 8;
inline constexpr std::size_t kMaxPrivateData = STM_PRIVATE_DATA - kPrivateHead - kQualifierSize;

struct PrivateData {
  std::uint32_t ipv4 = 0;                  // of the sender, host order; 0: it has none
  std::optional<std::uint64_t> conn_qual;  // that it asks for, where that is no port
  std::vector<std::byte> bytes;
};

std::vector<std::byte> pack(std::uint32_t ipv4, std::span<const std::byte> bytes);
// Of a request for `conn_qual`.
std::vector<std::byte> pack_request(std::uint32_t ipv4, std::uint64_t conn_qual,
                                    std::span<const std::byte> bytes);
// None: no DAT consumer has sent it.
std::optional<PrivateData> unpack(stm_connection_t connection);

}  // namespace stp::udapl
