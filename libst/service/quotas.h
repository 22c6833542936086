// SPDX-License-Identifier: BSD-3-Clause
// Quotas that an operator can choose: for one client, all its endpoints together, and for all
// clients of a link. The defaults are in limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libst/service/budget.h"
#include "libst/service/limits.h"

namespace stp::service {

struct Quotas {
  std::size_t clients = limits::kClients;  // of one link
  std::size_t endpoints = limits::kEndpoints;
  std::size_t regions = limits::kRegions;
  std::size_t mxs = limits::kMxs;
  std::uint32_t connections = limits::kChannels;
  std::uint64_t slots = limits::kSlots;
  std::uint64_t queue_bytes = limits::kChannelBytes;
  std::uint64_t mapped_bytes = limits::kMappedBytes;
  std::uint64_t map_bytes = limits::kMapRequestBytes;  // in one kMap request
  // For all clients together, and the share that one user may have (budget.h).
  unsigned user_share = kUserShare;
  std::uint64_t total_endpoints = limits::kTotalEndpoints;
  std::uint64_t total_regions = limits::kTotalRegions;
  // 0: a fraction of the machine's memory.
  std::uint64_t total_queue_bytes = 0, total_mapped_bytes = 0, total_table_bytes = 0;
  std::uint64_t total_window_bytes = 0;
};

}  // namespace stp::service
