// SPDX-License-Identifier: BSD-3-Clause
#include "stp/memory/bufx_range.h"

#include <algorithm>
#include <cerrno>

namespace stp {

// protocol: 7.2
int BufxRange::bind(std::uint32_t first, std::span<const MutableBytes> pieces, RegionId region) {
  auto const size = std::size_t{1} << bufsize_;
  std::uint64_t wanted = 0;
  for (auto const& piece : pieces) {
    if (piece.empty() || piece.size() % size != 0) return -EINVAL;
    wanted += piece.size() / size;
  }
  if (wanted == 0) return -EINVAL;
  if (first < base_ || std::uint64_t{first} - base_ + wanted > count_) return -ERANGE;
  auto const from = std::size_t{first} - base_;
  if (from + wanted > kMaxReach) return -ENOMEM;
  for (auto i = from; i < from + wanted && i < entries_.size(); ++i)
    if (entries_[i].memory != nullptr) return -EBUSY;

  if (entries_.size() < from + wanted) entries_.resize(from + wanted);
  auto at = from;
  for (auto const& piece : pieces)
    for (std::size_t offset = 0; offset < piece.size(); offset += size)
      entries_[at++] = {piece.data() + offset, region};
  return 0;
}

void BufxRange::unbind(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) entries_[first - base_ + i] = {};
}

Bytes BufxRange::run(std::uint64_t at, std::uint64_t length, RegionId& region) const {
  auto const size = std::uint64_t{1} << bufsize_;
  auto bufx = at >> bufsize_;
  auto const* entry = bufx > 0xffffffff ? nullptr : find(static_cast<std::uint32_t>(bufx));
  if (entry == nullptr) return {};
  region = entry->region;
  auto const* const start = entry->memory + (at & (size - 1));
  auto found = size - (at & (size - 1));
  while (found < length && ++bufx <= 0xffffffff) {
    auto const* const next = find(static_cast<std::uint32_t>(bufx));
    if (next == nullptr || next->region != region || next->memory != start + found) break;
    found += size;
  }
  return {start, static_cast<std::size_t>(std::min(found, length))};
}

bool BufxRange::covers(std::uint32_t bufx, std::uint32_t offset, std::uint64_t length) const {
  auto const size = std::uint64_t{1} << bufsize_;
  if (offset >= size || find(bufx) == nullptr) return false;
  if (length == 0) return true;
  auto const last = std::uint64_t{bufx} + ((offset + length - 1) >> bufsize_);
  if (last > 0xffffffff) return false;
  for (auto b = std::uint64_t{bufx} + 1; b <= last; ++b)
    if (find(static_cast<std::uint32_t>(b)) == nullptr) return false;
  return true;
}

}  // namespace stp
