// SPDX-License-Identifier: BSD-3-Clause
// The memory and the Mx of an endpoint. With it st_tx rejects at once what the Node would reject
// later. The Node does not rely on it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <unordered_map>

#include "stp/node/node.h"

namespace stp::client {

struct BufxInterval {
  std::uint32_t first = 0, count = 0;
  [[nodiscard]] bool contains(std::uint32_t bufx) const { return bufx - first < count; }
};

class Mappings {
 public:
  void add(RegionId region, Direction direction, BufxInterval interval);
  // Also removes every Mx on the region.
  void remove(RegionId region);

  void add_mx(std::uint16_t mx, RegionId region, VcId vc);
  // Whether `vc` may use `mx`.
  [[nodiscard]] bool owns_mx(VcId vc, std::uint16_t mx) const;
  void remove_mx(std::uint16_t mx);
  void remove_mx_of(VcId vc);

  // Whether `length` bytes (not 0) from (bufx, offset) on are mapped for sending.
  [[nodiscard]] bool can_send(std::uint32_t bufx, std::uint32_t offset, std::uint32_t length,
                              unsigned bufsize) const;
  // Whether `vc` may let its peer write to `bufx` through `mx`.
  [[nodiscard]] bool can_grant(VcId vc, std::uint16_t mx, std::uint32_t bufx) const;

 private:
  struct MxRecord {
    RegionId region;
    VcId vc;  // kNoneId: any connection of the endpoint
    BufxInterval interval;
  };
  struct RegionRecord {
    Direction direction;
    BufxInterval interval;
  };
  [[nodiscard]] const MxRecord* find_mx(VcId vc, std::uint16_t mx) const;

  [[nodiscard]] bool find_transmit(std::uint32_t bufx, std::uint64_t last) const;

  // The interval of transmit memory found last, first << 32 | count; 0: none. Most lookups hit it
  // and need no lock.
  mutable std::atomic<std::uint64_t> found_{0};
  mutable std::shared_mutex mutex_;
  std::unordered_map<RegionId, RegionRecord> regions_;
  std::map<std::uint32_t, std::uint32_t> transmit_;  // first Bufx -> count; none overlap
  std::unordered_map<std::uint16_t, MxRecord> mxs_;
};

}  // namespace stp::client
