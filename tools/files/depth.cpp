// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/depth.h"

#include <unistd.h>

namespace stp::files {

std::size_t Reserve::usual() {
  constexpr std::size_t kMost = std::size_t{256} << 20, kPart = 16;
  const auto pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return kMost / kPart;
  return std::min(kMost, static_cast<std::size_t>(pages) / kPart * static_cast<std::size_t>(size));
}

bool Reserve::take(std::size_t bytes) {
  for (auto left = left_.load(); bytes <= left / 2;)
    if (left_.compare_exchange_weak(left, left - bytes)) return true;
  return false;
}

bool Inflow::fills(std::size_t room, std::size_t bytes, TimePoint now, const Path& path) {
  const auto time = now - since_;
  if (!path.is_long()) return false;
  bytes_ += bytes;
  if (time < path.round_trip()) return false;
  since_ = now;
  const auto in_a_round_trip = static_cast<double>(std::exchange(bytes_, 0)) *
                               static_cast<double>(path.round_trip().count()) /
                               static_cast<double>(time.count());
  return in_a_round_trip >= static_cast<double>(room) / 2;
}

}  // namespace stp::files
