// SPDX-License-Identifier: BSD-3-Clause
#include "stp/memory/mx_table.h"

#include <cerrno>

namespace stp {

// protocol: 7.4
int MxTable::allocate(const MxEntry& entry) {
  std::uint16_t mx;
  bool const full = entries_.size() > 0xffff;
  if (full && free_.empty()) return -ENOSPC;
  // A freed name rests for a while, so that a late frame does not find it in new hands.
  if (full || free_.size() > kResting) {
    mx = free_.front();
    free_.pop_front();
    entries_[mx] = entry;
  } else {
    mx = static_cast<std::uint16_t>(entries_.size());
    entries_.push_back(entry);
  }
  return mx;
}

void MxTable::free(std::uint16_t mx) {
  entries_[mx] = {};
  free_.push_back(mx);
}

}  // namespace stp
