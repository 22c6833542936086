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

std::shared_ptr<Path> PathTable::find(const MacAddr& station, std::uint64_t stu) {
  auto& known = paths_[station];
  if (auto path = known.lock()) return path;
  const std::shared_ptr<Path> path(new Path(stu, roomy_), [this, station](Path* over) {
    paths_.erase(station);
    delete over;
  });
  known = path;
  return path;
}

}  // namespace stp
