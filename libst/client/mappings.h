// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint has mapped and granted: lets st_tx refuse at once what the Node would refuse
// later. The Node does not rely on it.
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
  // With every Mx on it.
  void remove(RegionId region);

  void add_mx(std::uint16_t mx, RegionId region, VcId vc);
  // Whether `mx` may be named by `vc`.
  [[nodiscard]] bool owns_mx(VcId vc, std::uint16_t mx) const;
  void remove_mx(std::uint16_t mx);
  void remove_mx_of(VcId vc);

  // Whether transmit memory is mapped at all of `length` bytes (not 0) from (bufx, offset) on.
  [[nodiscard]] bool can_send(std::uint32_t bufx, std::uint32_t offset, std::uint32_t length,
                              unsigned bufsize) const;
  // Whether `vc` may let its peer write to `bufx` through `mx`.
  [[nodiscard]] bool can_grant(VcId vc, std::uint16_t mx, std::uint32_t bufx) const;

 private:
  struct MxRecord {
    RegionId region;
    VcId vc;  // kNoneId: any of the endpoint's
    BufxInterval interval;
  };
  struct RegionRecord {
    Direction direction;
    BufxInterval interval;
  };
  [[nodiscard]] const MxRecord* find_mx(VcId vc, std::uint16_t mx) const;

  [[nodiscard]] bool find_transmit(std::uint32_t bufx, std::uint64_t last) const;

  // The interval of transmit memory last found, first << 32 | count, which most who ask look for:
  // they need no lock. 0: none.
  mutable std::atomic<std::uint64_t> found_{0};
  mutable std::shared_mutex mutex_;
  std::unordered_map<RegionId, RegionRecord> regions_;
  std::map<std::uint32_t, std::uint32_t> transmit_;  // first Bufx -> count; none overlap
  std::unordered_map<std::uint16_t, MxRecord> mxs_;
};

}  // namespace stp::client
