// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/shared_pages.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "libst/client/error.h"
#include "libst/client/handle_table.h"
#include "libst/client/set_aside.h"
#include "libst/ipc/requests.h"
#include "stp/base/assert.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace stp::client {
namespace {

using ipc::SharedMemory;

// Whole pages around `memory`.
Bytes pages_of(Bytes memory) {
  const auto page = ipc::page_size();
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto begin = at / page * page;
  const auto end = (at + memory.size() + page - 1) / page * page;
  return {memory.data() - (at - begin), end - begin};
}

int protection_of(const MappedArea& area) {
  return (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0);
}

// Returns whether two adjacent areas can go into one memfd.
bool alike(const MappedArea& left, const MappedArea& right) {
  return !is_region(left) && !is_region(right) && left.shared == right.shared &&
         protection_of(left) == protection_of(right) && left.executable == right.executable;
}

void join_alike(std::vector<MappedArea>& areas) {
  std::vector<MappedArea> joined;
  for (auto& area : areas) {
    if (!joined.empty() && alike(joined.back(), area))
      joined.back().end = area.end;
    else
      joined.push_back(std::move(area));
  }
  areas = std::move(joined);
}

void append(Share& share, Share::Part part) {
  if (!share.parts.empty()) {
    auto& last = share.parts.back();
    if (last.memory == part.memory && last.offset + last.length == part.offset) {
      last.length += part.length;
      return;
    }
  }
  share.parts.push_back(std::move(part));
}

// The kernel copies, because it reports an error where a load would fault. Makes the system call
// itself: a sanitizer would check the buffer of ::pwrite(), and whole pages also hold bytes that
// are not the caller's.
int copy_into(int fd, const MappedArea& area) {
  for (auto at = area.begin; at < area.end;) {
    const auto copied = ::syscall(SYS_pwrite64, fd, at, area.end - at, at - area.begin);
    if (copied < 0 && errno == EINTR) continue;
    if (copied <= 0) return copied < 0 ? -errno : -EFAULT;
    at += static_cast<std::uintptr_t>(copied);
  }
  return 0;
}

// Allocates all pages of the area here, on account of this program: stpd refuses memory with
// missing pages.
int make_pages(const MappedArea& area) {
  auto* const at = reinterpret_cast<std::byte*>(area.begin);
  const auto length = area.end - area.begin;
  int result = 0;
  do {
    result = ::madvise(at, length, MADV_POPULATE_READ);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0) return 0;
  // Linux before 5.14 does not know the advice (EINVAL): touches each page instead.
  if (errno != EINVAL)
    return fail(-ENOMEM,
                std::string("cannot allocate the pages of the memory: ") + std::strerror(errno));
  for (std::size_t i = 0; i < length; i += ipc::page_size())
    static_cast<void>(*static_cast<volatile std::byte*>(at + i));
  return 0;
}

MutableBytes bytes_of(const MappedArea& area) {
  return {reinterpret_cast<std::byte*>(area.begin), area.end - area.begin};
}

}  // namespace

SharedPages& SharedPages::instance() {
  static auto* const all = new SharedPages;  // never destroyed, as HandleTable
  return *all;
}

int SharedPages::share(std::span<const MutableBytes> memory, std::span<const MutableBytes> own,
                       Share& out, bool anew) {
  // Held until the memory is lent: a fork in between would make the pages private.
  const Lock guard(mutex_);
  if (std::exchange(cut_off_, false))
    return fail(-ENOMEM,
                "after a fork, pages at the ends of mapped memory could not be shared with stpd "
                "again: what peers write there is not seen. Unmap that memory and map it again");
  if (anew) give_up(memory);
  if (const auto error = add_all(memory, out); error != 0) return error;
  // What rests may be what cuts the memory, for whichever domain it rests.
  if (out.parts.size() > ipc::kMaxSegments && end_rests()) {
    out.parts.clear();
    out.pieces.clear();
    if (const auto error = add_all(memory, out); error != 0) return error;
  }
  if (out.parts.size() > ipc::kMaxSegments)
    return fail(-EOPNOTSUPP, "the memory consists of too many separately mapped pieces");
  for (const auto piece : own) out.leases.emplace_back(lent_, piece);
  return 0;
}

// Forgets the memfds that are mapped there and held by no share, so that their pages count as
// private ones.
void SharedPages::give_up(std::span<const MutableBytes> memory) {
  end_rests();
  for (const auto piece : memory) {
    std::vector<MappedArea> areas;
    if (areas_of(pages_of(piece), areas) != 0) return;
    for (const auto& area : areas) {
      const auto held = known(area);
      const auto holders = held.use_count() - 1;
      if (held != nullptr && holders <= (created_.contains(area.inode) ? 1 : 0))
        known_.erase(area.inode);
    }
  }
}

int SharedPages::add_all(std::span<const MutableBytes> memory, Share& out) {
  std::erase_if(known_, [this](auto& entry) STP_REQUIRES(mutex_) {
    return entry.second.expired() && (created_.erase(entry.first), true);
  });
  for (const auto piece : memory)
    if (const auto error = add(piece, out); error != 0) return error;
  return 0;
}

int SharedPages::add(Bytes memory, Share& out) {
  const auto pages = pages_of(memory);
  std::vector<MappedArea> areas;
  if (const auto error = areas_of(pages, areas); error != 0) return error;
  for (auto& area : areas) disown(area);
  join_alike(areas);
  std::uint64_t before = 0;
  for (const auto& part : out.parts) before += part.length;
  const auto lead = static_cast<std::uint64_t>(memory.data() - pages.data());
  out.pages = pages;
  out.pieces.push_back({before + lead, memory.size()});
  for (const auto& area : areas) {
    Share::Part part;
    if (const auto error = part_of(area, part); error != 0) return error;
    if (const auto error = make_pages(area); error != 0) return error;
    append(out, std::move(part));
  }
  return 0;
}

std::shared_ptr<const SharedMemory> SharedPages::create(MutableBytes pages,
                                                        std::optional<Lease>& lease) {
  const Lock guard(mutex_);  // held until the memory is lent, as in share()
  auto memory = remember(SharedMemory::lend(kRegionName, pages.size()), pages.data());
  if (memory == nullptr || ::mmap(pages.data(), pages.size(), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, memory->fd(), 0) == MAP_FAILED)
    return nullptr;
  struct stat status {};
  if (::fstat(memory->fd(), &status) == 0) created_.insert(status.st_ino);
  lease.emplace(lent_, pages);
  return memory;
}

void SharedPages::unmap(MutableBytes pages, Lease& lease) {
  const Lock guard(mutex_);
  STP_ASSERT(!lease.bytes_.empty(), "a lease ends once");
  lent_.remove(std::exchange(lease.bytes_, {}));
  ::munmap(pages.data(), pages.size());
}

std::shared_ptr<const SharedMemory> SharedPages::remember(
    std::shared_ptr<const SharedMemory> memory, const std::byte* at) {
  struct stat status {};
  if (memory == nullptr || ::fstat(memory->fd(), &status) != 0) return nullptr;
  known_[status.st_ino] = memory;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  placements_.add({begin, begin + memory->size()}, status.st_ino, 0);
  return memory;
}

std::shared_ptr<const SharedMemory> SharedPages::known(const MappedArea& area) const {
  const auto found = is_region(area) ? known_.find(area.inode) : known_.end();
  return found == known_.end() ? nullptr : found->second.lock();
}

// Treats memory that is no longer lent as private memory. So it can be joined with its neighbours,
// and many small regions do not cut a heap into ever more pieces.
void SharedPages::disown(MappedArea& area) const {
  if (!is_region(area) || known(area) != nullptr) return;
  area.shared = false;
  area.name.clear();
}

int SharedPages::part_of(const MappedArea& area, Share::Part& out) {
  if (auto memory = known(area)) {
    out = {std::move(memory), area.offset, area.end - area.begin};
    return 0;
  }
  if (area.shared) {
    return fail(-EOPNOTSUPP, "memory of a shared mapping (" + area.name +
                                 ") cannot be lent to stpd: it would be cut off from the others "
                                 "who share it");
  }
  if (area.executable) return fail(-EOPNOTSUPP, "executable memory cannot be lent to stpd");
  if (holds_this_thread(bytes_of(area)))
    return fail(-EOPNOTSUPP,
                "the memory shares a page with the stack of the calling thread; "
                "buffers of whole pages do not");
  return replace(area, out);
}

int SharedPages::replace(const MappedArea& area, Share::Part& out) {
  const auto pages = bytes_of(area);
  const auto memory = remember(SharedMemory::lend(kRegionName, pages.size()), pages.data());
  if (memory == nullptr) return -errno;
  ::madvise(pages.data(), pages.size(), MADV_POPULATE_READ);  // WriteFreeze needs present pages
  int copied = 0, mapped = 0;
  {
    const WriteFreeze freeze(pages);
    copied = copy_into(memory->fd(), area);
    if (copied == 0) mapped = map_over(pages, protection_of(area), *memory, 0);
  }
  if (copied != 0) return copied;
  if (mapped != 0)
    return fail(-EOPNOTSUPP, std::string("the pages cannot be replaced: ") + std::strerror(mapped));
  out = {memory, 0, pages.size()};
  return 0;
}

// SharedPages during a fork(): what the child gets of shared pages.

SharedPages::SharedPages() {
  HandleTable::instance();  // registers its handler first, so that it runs first in a child
  keep_maps_open();
  // What is locked before a fork is unlocked after it: no one function does both.
  ::pthread_atfork(
      []() STP_THREAD_SAFETY(no_thread_safety_analysis) { instance().before_fork(); },
      []() STP_THREAD_SAFETY(no_thread_safety_analysis) { instance().after_fork_in_parent(); },
      []() STP_THREAD_SAFETY(no_thread_safety_analysis) { instance().after_fork_in_child(); });
}

Lease::~Lease() {
  if (bytes_.empty()) return;
  auto& all = SharedPages::instance();
  const Lock guard(all.mutex_);
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

// Shares that rest: nobody uses their region, but the pages stay shared for the next registration
// of the same memory. Their bytes count as lent. A fork ends that, so that the child gets a copy of
// them as of any private page.

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
  const Lock guard(all.mutex_);
  if (all.leave_rest(*this)) all.end_leases(*this);
}

void Share::rest() {
  SharedPages::instance().rest(*this);
}

bool Share::resume(std::span<const AreaAt> areas) {
  return SharedPages::instance().resume(*this, areas);
}

void SharedPages::rest(Share& share) {
  const Lock guard(mutex_);
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
  const Lock guard(mutex_);
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
