// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/endpoint_sizes.h"

#include <algorithm>
#include <bit>

namespace stp::replay {

// protocol: 8.2, 11.8
bool EndpointSizes::allow(const SeenStu& stu) {
  auto least = least_, most = most_;
  if (stu.length > 1)
    least = std::max(least, static_cast<unsigned>(std::bit_width(stu.length - 1)));
  const auto divides = [&](std::uint64_t place) {
    if (place != 0) most = std::min(most, static_cast<unsigned>(std::countr_zero(place)));
  };
  if (stu.number != 0) divides(stu.offset);         // begins at the start of a tile
  if (!stu.last) divides(stu.offset + stu.length);  // ends at the end of a tile
  if (stu.number != 0 && !stu.last) divides(stu.length);
  if (least > most) return false;
  least_ = least;
  most_ = most;
  return true;
}

// Derives the buffer size from two STUs: their distance in bytes, divided by that in buffers.
bool EndpointSizes::span(const SeenStu& one, const SeenStu& other) {
  const auto size = std::int64_t{1} << most_;
  const auto tile = [&](const SeenStu& stu) { return std::int64_t{stu.offset} / size; };
  const auto buffers = std::int64_t{other.bufx} - one.bufx;
  const auto tiles = std::int64_t{other.number} - one.number - tile(other) + tile(one);
  const auto bytes = tiles * size;
  if (bytes % buffers != 0 || bytes / buffers <= 0) return false;
  const auto bufsize = static_cast<std::uint64_t>(bytes / buffers);
  if (!std::has_single_bit(bufsize)) return false;
  const auto log2 = static_cast<unsigned>(std::countr_zero(bufsize));
  if (log2 < most_ || log2 > wire::kMaxBufsize) return false;
  bufsize_ = log2;
  return true;
}

}  // namespace stp::replay
