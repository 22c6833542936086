// SPDX-License-Identifier: BSD-3-Clause
// Shares that rest: nobody uses their region, but the pages stay shared for the next registration
// of the same memory. Their bytes count as lent. A fork ends that, so that the child gets a copy of
// them as of any private page.
#include <sys/stat.h>

#include <algorithm>

#include "libst/client/shared_pages.h"
#include "stp/base/assert.h"

namespace stp::client {
namespace {

// Whether the parts of the share are mapped where they were. `areas`: what is mapped there now.
bool is_there(const Share& share, std::span<const AreaAt> areas) {
  auto at = reinterpret_cast<std::uintptr_t>(share.pages.data());
  auto area = areas.begin();
  for (const auto& part : share.parts) {
    const auto begin = at, end = at + part.length;
    while (at < end) {
      while (area != areas.end() && area->end <= at) ++area;
      if (area == areas.end() || area->begin > at) return false;
      if (!area->shared || area->inode != part.inode || area->device != part.device ||
          area->offset + (at - area->begin) != part.offset + (at - begin))
        return false;
      at = std::min(area->end, end);
    }
  }
  return true;
}

}  // namespace

Share::~Share() {
  if (!has_rested) return;
  auto& all = SharedPages::instance();
  std::lock_guard const guard(all.mutex_);
  if (all.leave_rest(*this)) all.end_leases(*this);
}

void Share::rest() {
  SharedPages::instance().rest(*this);
}

bool Share::resume(std::span<const AreaAt> areas) {
  return SharedPages::instance().resume(*this, areas);
}

void SharedPages::rest(Share& share) {
  std::lock_guard const guard(mutex_);
  if (!share.has_rested) {
    for (auto& part : share.parts) {
      struct stat status {};
      ::fstat(part.memory->fd(), &status);  // on failure, inode 0 is found nowhere
      part.device = status.st_dev;
      part.inode = status.st_ino;
    }
    // The program may call realloc() from now on. The advice stays with the pages.
    for (const auto& lease : share.leases) LentRanges::keep_from_growing(lease.bytes_);
  }
  share.has_rested = true;
  resting_.push_back(&share);
}

bool SharedPages::resume(Share& share, std::span<const AreaAt> areas) {
  std::lock_guard const guard(mutex_);
  if (!leave_rest(share)) return false;
  if (share.pieces.size() == 1 && is_there(share, areas)) return true;
  end_leases(share);
  return false;
}

// False: the share does not rest. A fork has ended its leases, or it is in use.
bool SharedPages::leave_rest(const Share& share) {
  const auto at = std::find(resting_.rbegin(), resting_.rend(), &share);
  if (at == resting_.rend()) return false;
  *at = resting_.back();
  resting_.pop_back();
  return true;
}

// The program may have unmapped the pages meanwhile. What it has mapped there since is left alone.
void SharedPages::end_leases(Share& share) {
  std::vector<AreaAt> areas;
  const auto there = areas_at(share.pages, areas) && is_there(share, areas);
  for (auto& lease : share.leases) {
    const auto bytes = std::exchange(lease.bytes_, {});
    there ? lent_.remove(bytes) : lent_.forget(bytes);
  }
}

// Their memfds are held no more, so that the pages count as private ones. False: none rests.
bool SharedPages::end_rests() {
  if (resting_.empty()) return false;
  for (; !resting_.empty(); resting_.pop_back()) {
    end_leases(*resting_.back());
    resting_.back()->parts.clear();
  }
  return true;
}

}  // namespace stp::client
