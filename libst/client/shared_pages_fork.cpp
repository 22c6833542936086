// SPDX-License-Identifier: BSD-3-Clause
// SharedPages during a fork(): what the child gets of shared pages.
#include <pthread.h>
#include <sys/mman.h>

#include <new>

#include "libst/client/handle_table.h"
#include "libst/client/shared_pages.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace stp::client {

SharedPages::SharedPages() {
  HandleTable::instance();  // registers its handler first, so that it runs first in a child
  keep_maps_open();
  ::pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork_in_parent(); },
                   [] { instance().after_fork_in_child(); });
}

Lease::~Lease() {
  if (bytes_.empty()) return;
  auto& all = SharedPages::instance();
  std::lock_guard const guard(all.mutex_);
  all.lent_.remove(bytes_);
}

// In a child that forks again nothing is to be done: it shares no pages with stpd.
void SharedPages::before_fork() {
  mutex_.lock();
  leaving_ = !HandleTable::instance().inherited();
  if (leaving_) leave_to_child();
}

// If memory or information is missing, the child gets none of the pages: that is safer than sharing
// them.
void SharedPages::leave_to_child() {
  try {
    end_rests();
    std::vector<MappedArea> areas;
    if (placements_.find(areas)) {
      for (const auto& area : areas) leave_to_child(area);
      return;
    }
  } catch (const std::bad_alloc&) {
    put_back();
  }
  all_left_out_ = true;
  placements_.advise(MADV_DONTFORK);
}

void SharedPages::leave_to_child(const MappedArea& area) {
  const auto protection = (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0);
  const auto memory = known(area);
  for (const auto& [pages, kind] : lent_.parts({area.begin, area.end})) {
    const auto offset = area.offset + (pages.begin - area.begin);
    // Advised once more: the first time may have failed, or the program may have undone it.
    if (kind == LentRanges::Kind::kFilled && memory != nullptr &&
        ::madvise(reinterpret_cast<void*>(pages.begin), pages.size(), MADV_DONTFORK) == 0)
      views_.push_back({pages, protection, memory, offset});
    else if (kind == LentRanges::Kind::kFree)
      make_private(pages, protection, {area.inode, offset});
    else
      aside_.emplace_back(pages, protection, memory, SetAside::Place{area.inode, offset});
  }
}

// Pages that are no longer lent. Another thread may unmap some of them at this moment, and use the
// addresses for other memory. That is left alone, and the rest becomes private all the same.
void SharedPages::make_private(Span pages, int protection, const SetAside::Place& place) {
  constexpr int kLooks = 4;
  std::vector<Span> left{pages};
  for (int i = 0; i < kLooks && !left.empty(); ++i) {
    std::vector<Span> changed;
    for (const auto& part : left) {
      SetAside::Place const at{place.inode, place.offset + (part.begin - pages.begin)};
      aside_.emplace_back(part, protection, nullptr, at);
      if (!aside_.back().has_gone()) continue;
      aside_.pop_back();
      for (const auto& there : SetAside::left_of(part, at)) changed.push_back(there);
    }
    left = std::move(changed);
  }
}

void SharedPages::put_back() {
  for (const auto& pages : aside_)
    if (!pages.put_back()) cut_off_ = true;
  aside_.clear();
}

void SharedPages::after_fork_in_parent() {
  if (leaving_) {
    put_back();
    views_.clear();
    if (all_left_out_) {
      placements_.advise(MADV_DOFORK);
      lent_.leave_out();
      all_left_out_ = false;
    }
  }
  mutex_.unlock();
}

// Makes system calls only: locks that other threads held at the fork stay locked in the child.
void SharedPages::after_fork_in_child() {
  if (leaving_)
    for (const auto& [pages, protection, memory, offset] : views_)
      ::mmap(reinterpret_cast<void*>(pages.begin), pages.size(), protection,
             MAP_PRIVATE | MAP_FIXED_NOREPLACE, memory->fd(), static_cast<off_t>(offset));
  mutex_.unlock();
}

}  // namespace stp::client
