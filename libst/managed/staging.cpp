// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/staging.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "libst/ipc/shared_memory.h"
#include "libst/managed/domain.h"

namespace stp::managed {

// ---- pages that messages leave from ----

void SendPages::add(std::byte* pages, Memory* memory, std::size_t blocks, bool go_back) {
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto number = blocks_.size();
    blocks_.push_back({pages + i * kEagerRing, memory, 0, go_back && number >= kKept});
    if (number / 64 == open_.size()) open_.push_back(0);
    open_[number / 64] |= std::uint64_t{1} << number % 64;
  }
  free_ += blocks * kBlock;
}

SendPages::Place SendPages::find(std::uint32_t count) const {
  for (std::size_t word = 0; word < open_.size(); ++word)
    for (auto left = open_[word]; left != 0; left &= left - 1) {
      const auto block = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      const auto free = ~std::uint32_t{blocks_[block].used} & kFull;
      auto first = free;  // as bits: the first ones of so many free pages in a row
      for (std::uint32_t i = 1; i < count; ++i) first &= free >> i;
      if (first != 0)
        return {static_cast<std::uint32_t>(block),
                static_cast<std::uint16_t>(std::countr_zero(first)),
                static_cast<std::uint16_t>(count)};
    }
  return {};
}

SendPages::Place SendPages::take(std::uint32_t count) {
  const auto place = find(count);
  STP_ASSERT(place.count != 0, "pages are taken where there are some");
  auto& block = blocks_[place.block];
  block.used = static_cast<std::uint16_t>(block.used | ((1U << count) - 1) << place.first);
  if (block.used == kFull) open_[place.block / 64] &= ~(std::uint64_t{1} << place.block % 64);
  free_ -= count;
  wanted_ |= free_ < kLow && !refused_;
  return place;
}

void SendPages::give_back(const Place& place) {
  if (place.block >= blocks_.size()) return;  // they are unmapped
  auto& block = blocks_[place.block];
  const auto bits = ((1U << place.count) - 1) << place.first;
  STP_ASSERT((block.used & bits) == bits, "pages that come back were taken");
  block.used = static_cast<std::uint16_t>(block.used & ~bits);
  open_[place.block / 64] |= std::uint64_t{1} << place.block % 64;
  free_ += place.count;
  if (block.used == 0 && block.go_back) ::madvise(block.base, kEagerRing, MADV_DONTNEED);
}

void SendPages::clear() {
  blocks_.clear();
  open_.clear();
  free_ = 0;
  wanted_ = false;
  refused_ = true;
}

// ---- all of it ----

// Where it fails, as of memory that is locked, the pages stay.
void RingMemory::give_back(std::byte* pages, std::size_t size) const {
  if (keepers != nullptr) ::madvise(pages, size, MADV_DONTNEED);
}

void StagingArea::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, size);
}

StagingArea::Wanted StagingArea::wanted() const {
  Wanted what;
  if (blocks_.free.empty()) what.blocks = std::clamp(blocks_.made, kFewest, kMost);
  const bool lacks_ring = wants_ring_ && rings_.free.empty();
  if (lacks_ring || rings_.made == 0) what.rings = std::clamp(rings_.made, kFewest, kMostRings);
  if (pages_.is_wanted() || pages_.blocks() == 0)
    what.page_blocks = std::clamp(pages_.blocks(), kFewestPages, kMostRings);
  return what;
}

void StagingArea::add(const Wanted& what, std::byte* base, Memory* memory) {
  for (std::size_t i = 0; i < what.blocks; ++i, base += kStagingBlock)
    blocks_.free.push_back({base, memory, &pages_});
  for (std::size_t i = 0; i < what.rings; ++i, base += kEagerRing)
    rings_.free.push_back({base, memory, here_ ? &keepers_ : nullptr});
  blocks_.made += what.blocks;
  rings_.made += what.rings;
  pages_.add(base, memory, what.page_blocks, here_);
}

void StagingArea::answer(bool refused) {
  wants_block_ = wants_ring_ = false;
  rings_refused_ = refused;
  pages_.answer(refused);
}

int StagingArea::grow(const std::shared_ptr<Domain>& domain) {
  domain->control_mutex().is_held();
  Wanted what;
  {
    const Lock guard(domain->mutex());
    what = wanted();
    if (what.bytes() == 0) {  // others have given some back meanwhile
      wants_block_ = wants_ring_ = false;
      return 0;
    }
  }
  const auto align = std::size_t{1} << domain->bufsize();
  const auto size = (what.bytes() + align - 1) / align * align;
  const auto room = size + align;
  auto* const mapped =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Chunk chunk;
  auto error = mapped == MAP_FAILED ? -errno : 0;
  void* start = mapped;
  // What is lent to a stpd is allocated at once, and the stpd has it, too.
  const auto here = !domain->backend().lends_memory() && ipc::page_size() == kEagerSlot;
  if (error == 0) {
    chunk.bytes = {static_cast<std::byte*>(mapped), Unmap{room}};
    auto left = room;
    std::align(align, size, start, left);
    if (here) ::madvise(mapped, room, MADV_NOHUGEPAGE);  // a touch allocates a page, not 512
    chunk.memory = std::make_shared<Memory>(
        domain, MutableBytes{static_cast<std::byte*>(start), size}, STM_LOCAL_WRITE);
    error = domain->add_memory(chunk.memory);
  }
  const Lock guard(domain->mutex());
  answer(error != 0);
  if (error != 0) return error;
  here_ = here;
  add(what, static_cast<std::byte*>(start), chunk.memory.get());
  chunks_.push_back(std::move(chunk));
  return 0;
}

Staging StagingArea::take() {
  STP_ASSERT(!blocks_.free.empty(), "a block is taken where there is one");
  const auto block = blocks_.free.back();
  blocks_.free.pop_back();
  return block;
}

void StagingArea::give_back(const Staging& block) {
  STP_ASSERT(block.base != nullptr && blocks_.free.size() < blocks_.made,
             "a block that comes back was taken");
  blocks_.free.push_back(block);
  if (chunks_.empty()) return;  // it is unmapped
  if (here_) ::madvise(block.base, kStagingBlock, MADV_DONTNEED);
  rings_refused_ = false;
  pages_.ask_again();
}

std::optional<RingMemory> StagingArea::take_ring() {
  if (rings_.free.empty()) {
    wants_ring_ = !rings_refused_;
    return std::nullopt;
  }
  const auto ring = rings_.free.back();
  rings_.free.pop_back();
  return ring;
}

void StagingArea::give_back(const RingMemory& ring) {
  STP_ASSERT(ring.base != nullptr && rings_.free.size() < rings_.made,
             "a ring that comes back was taken");
  if (!chunks_.empty()) ring.give_back(ring.base, kEagerRing);  // else it is unmapped
  rings_.free.push_back(ring);
}

void StagingArea::unbind() {
  blocks_.free.clear();
  rings_.free.clear();
  pages_.clear();
  for (const auto& chunk : chunks_) chunk.memory->unbind();
  chunks_.clear();
}

}  // namespace stp::managed
