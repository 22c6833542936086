// SPDX-License-Identifier: BSD-3-Clause
#include "stp/memory/bufx_range.h"

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

std::uint64_t BufxRange::run_on(std::uint64_t at, std::uint64_t length) const {
  auto const size = std::uint64_t{1} << bufsize_;
  auto bufx = at >> bufsize_;
  auto const& first = *find(static_cast<std::uint32_t>(bufx));
  std::uint64_t found = 0;
  while (found < length && ++bufx <= 0xffffffff) {
    auto const* const next = find(static_cast<std::uint32_t>(bufx));
    if (next == nullptr || next->region != first.region ||
        next->memory != first.memory + size + found)
      break;
    found += size;
  }
  return found;
}

bool BufxRange::covers_on(std::uint32_t bufx, std::uint64_t end) const {
  auto const last = std::uint64_t{bufx} + ((end - 1) >> bufsize_);
  if (last > 0xffffffff) return false;
  for (auto b = std::uint64_t{bufx} + 1; b <= last; ++b)
    if (find(static_cast<std::uint32_t>(b)) == nullptr) return false;
  return true;
}

}  // namespace stp
