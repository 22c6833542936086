// SPDX-License-Identifier: BSD-3-Clause
// Private data of DAT inside that of the managed API. A header before it identifies the layer and
// the requester, which a DAT consumer may ask for.
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
  std::uint32_t ipv4 = 0;                  // of the sender, host order; 0: none
  std::optional<std::uint64_t> conn_qual;  // the requested one, if it is not a port
  std::vector<std::byte> bytes;
};

std::vector<std::byte> pack(std::uint32_t ipv4, std::span<const std::byte> bytes);
// Packs the private data of a request for `conn_qual`.
std::vector<std::byte> pack_request(std::uint32_t ipv4, std::uint64_t conn_qual,
                                    std::span<const std::byte> bytes);
// nullopt: not sent by a DAT consumer.
std::optional<PrivateData> unpack(stm_connection_t connection);

}  // namespace stp::udapl
