// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/guarded_ranges.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>

namespace stp::service {

GuardedRanges::GuardedRanges(std::size_t most) : most_(most) {
  auto* const room = ::mmap(nullptr, most * sizeof(Entry), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  entries_ = static_cast<Entry*>(room);
}

GuardedRanges::~GuardedRanges() {
  ::munmap(entries_, most_ * sizeof(Entry));
}

std::size_t GuardedRanges::first_not_above(std::uintptr_t at) const {
  std::size_t low = 0, high = count_.load(std::memory_order_relaxed);
  while (low < high) {
    const auto middle = (low + high) / 2;
    if (entries_[middle].begin.load(std::memory_order_relaxed) > at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void GuardedRanges::move(std::size_t to, std::size_t from) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  entries_[to].begin.store(entries_[from].begin.load(kRelaxed), kRelaxed);
  entries_[to].end.store(entries_[from].end.load(kRelaxed), kRelaxed);
  entries_[to].torn.store(entries_[from].torn.load(kRelaxed), kRelaxed);
}

int GuardedRanges::add(MutableBytes range, Torn* torn) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  std::lock_guard const lock(mutex_);
  const auto count = count_.load();
  if (count == most_) return -ENOMEM;
  const auto at = first_not_above(begin);
  changes_.fetch_add(1);
  for (auto i = count; i > at; --i) move(i, i - 1);
  entries_[at].begin.store(begin);
  entries_[at].end.store(begin + range.size());
  entries_[at].torn.store(torn);
  count_.store(count + 1);
  changes_.fetch_add(1);
  return 0;
}

void GuardedRanges::remove(MutableBytes range) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  std::lock_guard const lock(mutex_);
  const auto count = count_.load();
  const auto at = first_not_above(begin);
  if (at == count || entries_[at].begin.load() != begin) return;
  changes_.fetch_add(1);
  for (auto i = at; i + 1 < count; ++i) move(i, i + 1);
  count_.store(count - 1);
  changes_.fetch_add(1);
}

bool GuardedRanges::find(std::uintptr_t at, Range& out) const {
  for (;;) {
    const auto version = changes_.load();
    if (version % 2 != 0) continue;  // another thread is changing the table: a millisecond at most
    const auto index = first_not_above(at);
    const auto found = index < count_.load();
    if (found)
      out = {entries_[index].begin.load(), entries_[index].end.load(), entries_[index].torn.load()};
    if (changes_.load() == version) return found && at < out.end;
  }
}

}  // namespace stp::service
