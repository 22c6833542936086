// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/mappings.h"

#include <mutex>

#include "stp/base/assert.h"

namespace stp::client {

void Mappings::add(RegionId region, Direction direction, BufxInterval interval) {
  std::unique_lock const guard(mutex_);
  STP_ASSERT(interval.count > 0 && !regions_.contains(region), "a region is mapped once");
  STP_ASSERT(direction != Direction::kTransmit || !transmit_.contains(interval.first),
             "no two regions have the same Bufx");
  regions_[region] = {direction, interval};
  if (direction == Direction::kTransmit) transmit_[interval.first] = interval.count;
}

void Mappings::remove(RegionId region) {
  std::unique_lock const guard(mutex_);
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  if (at->second.direction == Direction::kTransmit) {
    STP_ASSERT(transmit_.contains(at->second.interval.first), "what is removed was added");
    transmit_.erase(at->second.interval.first);
    found_.store(0, std::memory_order_relaxed);
  }
  regions_.erase(at);
  std::erase_if(mxs_, [region](auto& mx) { return mx.second.region == region; });
}

void Mappings::add_mx(std::uint16_t mx, RegionId region, VcId vc) {
  std::unique_lock const guard(mutex_);
  if (const auto at = regions_.find(region); at != regions_.end())
    mxs_[mx] = {region, vc, at->second.interval};
}

void Mappings::remove_mx(std::uint16_t mx) {
  std::unique_lock const guard(mutex_);
  mxs_.erase(mx);
}

void Mappings::remove_mx_of(VcId vc) {
  std::unique_lock const guard(mutex_);
  std::erase_if(mxs_, [vc](auto& mx) { return mx.second.vc == vc; });
}

bool Mappings::owns_mx(VcId vc, std::uint16_t mx) const {
  std::shared_lock const guard(mutex_);
  return find_mx(vc, mx) != nullptr;
}

const Mappings::MxRecord* Mappings::find_mx(VcId vc, std::uint16_t mx) const {
  const auto at = mxs_.find(mx);
  if (at == mxs_.end()) return nullptr;
  return at->second.vc == kNoneId || at->second.vc == vc ? &at->second : nullptr;
}

bool Mappings::can_send(std::uint32_t bufx, std::uint32_t offset, std::uint32_t length,
                        unsigned bufsize) const {
  const auto last = bufx + ((std::uint64_t{offset} + length - 1) >> bufsize);
  const auto found = found_.load(std::memory_order_relaxed);
  if (bufx >= found >> 32 && last < (found >> 32) + (found & UINT32_MAX)) return true;
  return find_transmit(bufx, last);
}

bool Mappings::find_transmit(std::uint32_t bufx, std::uint64_t last) const {
  std::shared_lock const guard(mutex_);
  for (std::uint64_t next = bufx; next <= last;) {
    auto after = transmit_.upper_bound(static_cast<std::uint32_t>(next));
    if (next > UINT32_MAX || after == transmit_.begin()) return false;
    const auto& [first, count] = *--after;
    const auto end = std::uint64_t{first} + count;
    if (next >= end) return false;
    // Stored under the lock, so that it is never stored after remove() has cleared it.
    found_.store(std::uint64_t{first} << 32 | count, std::memory_order_relaxed);
    next = end;
  }
  return true;
}

bool Mappings::can_grant(VcId vc, std::uint16_t mx, std::uint32_t bufx) const {
  std::shared_lock const guard(mutex_);
  const auto* const record = find_mx(vc, mx);
  return record != nullptr && record->interval.contains(bufx);
}

}  // namespace stp::client
