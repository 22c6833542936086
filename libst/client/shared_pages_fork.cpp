// SPDX-License-Identifier: BSD-3-Clause
// What a child of fork() has of shared pages.
#include <pthread.h>
#include <sys/mman.h>

#include "libst/client/handle_table.h"
#include "libst/client/shared_pages.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace stp::client {

SharedPages::SharedPages() {
  HandleTable::instance();  // its handler is there, and so knows of a child, before this one's
  ::pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork_in_parent(); },
                   [] { instance().after_fork_in_child(); });
}

Lease::Lease(Bytes bytes) : bytes_(bytes) {
  auto& all = SharedPages::instance();
  std::lock_guard const guard(all.mutex_);
  all.lent_.add(bytes_);
}

Lease::~Lease() {
  if (bytes_.empty()) return;
  auto& all = SharedPages::instance();
  std::lock_guard const guard(all.mutex_);
  all.lent_.remove(bytes_);
}

void SharedPages::before_fork() {
  mutex_.lock();
  if (HandleTable::instance().inherited()) return;
  for (auto const& area : placements_.find()) leave_to_child(area);
}

void SharedPages::leave_to_child(const MappedArea& area) {
  auto const protection = (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0);
  auto const memory = known(area);
  for (auto const& [pages, kind] : lent_.parts({area.begin, area.end})) {
    auto const offset = area.offset + (pages.begin - area.begin);
    if (kind == LentRanges::Kind::kFilled && memory != nullptr)
      views_.push_back({pages, protection, memory, offset});
    else
      aside_.emplace_back(pages, protection, kind == LentRanges::Kind::kMixed ? memory : nullptr,
                          offset);
  }
}

void SharedPages::after_fork_in_parent() {
  for (auto& pages : aside_) pages.put_back();
  aside_.clear();
  views_.clear();
  mutex_.unlock();
}

// Only by the system: other threads held locks that stay locked here.
void SharedPages::after_fork_in_child() {
  for (auto const& [pages, protection, memory, offset] : views_)
    ::mmap(reinterpret_cast<void*>(pages.begin), pages.size(), protection,
           MAP_PRIVATE | MAP_FIXED_NOREPLACE, memory->fd(), static_cast<off_t>(offset));
  mutex_.unlock();
}

}  // namespace stp::client
