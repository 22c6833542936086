// SPDX-License-Identifier: BSD-3-Clause
// What one client may have, all its endpoints together, as an operator can choose it: the limits
// are what holds where nothing was chosen.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libst/service/limits.h"

namespace stp::service {

struct Quotas {
  std::size_t clients = limits::kClients;  // of one daemon's link
  std::size_t endpoints = limits::kEndpoints;
  std::size_t regions = limits::kRegions;
  std::size_t mxs = limits::kMxs;
  std::uint32_t connections = limits::kChannels;
  std::uint64_t slots = limits::kSlots;
  std::uint64_t queue_bytes = limits::kChannelBytes;
  std::uint64_t mapped_bytes = limits::kMappedBytes;
  std::uint64_t map_bytes = limits::kMapRequestBytes;  // in one request
};

}  // namespace stp::service
