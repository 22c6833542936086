// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/path.h"

#include <bit>

#include "stp/wire/layout.h"

namespace stp {

unsigned Path::block_log2() const {
  constexpr std::uint64_t kBlocks = 8;  // in a window
  constexpr std::uint64_t kFirstStus = 4;
  const auto least = window_.is_known() ? stu_ : kFirstStus * stu_;
  const auto suits = std::max(window_.bytes() / kBlocks, least);
  return std::min(static_cast<unsigned>(std::bit_width(suits)) - 1, wire::kMaxBlocksize);
}

PathTable::Share PathTable::find(const MacAddr& station, std::uint64_t stu) {
  auto& entry = paths_.try_emplace(station, *this, station, stu).first->second;
  ++entry.shares;
  return Share(&entry);
}

void PathTable::Leave::operator()(Path* path) const {
  auto& entry = static_cast<Entry&>(*path);
  if (--entry.shares != 0) return;
  const auto station = entry.station;
  entry.table.paths_.erase(station);
}

}  // namespace stp
