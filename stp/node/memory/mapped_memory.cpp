// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/mapped_memory.h"

#include <cerrno>

#include "stp/base/assert.h"
#include "stp/base/scarce_memory.h"
#include "stp/base/work_meter.h"
#include "stp/node/common.h"
#include "stp/node/connection/port_table.h"

namespace stp {

// ---- Bufx ranges and Mx ----

const BufxRange::Piece BufxRange::kNone{};

// protocol: 7.2
int BufxRange::check(std::uint32_t first, std::span<const MutableBytes> pieces,
                     std::size_t& wanted) const {
  const auto size = std::size_t{1} << bufsize_;
  wanted = 0;
  if (pieces.size() > kMaxPieces) return -EINVAL;
  for (const auto& piece : pieces) {
    if (piece.empty() || piece.size() % size != 0) return -EINVAL;
    wanted += piece.size() / size;
  }
  if (wanted == 0) return -EINVAL;
  if (first < base_ || std::uint64_t{first} - base_ + wanted > count_) return -ERANGE;
  return first - base_ + wanted > kMaxReach ? -ENOMEM : 0;
}

int BufxRange::bind(std::uint32_t first, std::span<const MutableBytes> pieces, RegionId region) {
  std::size_t wanted = 0;
  if (const auto error = check(first, pieces, wanted); error != 0) return error;
  const auto from = std::size_t{first} - base_;
  for (auto at = from; at < from + wanted; at = (at | (kPageEntries - 1)) + 1)
    if (!is_free(part_of(at, from + wanted))) return -EBUSY;

  // Everything that can fail comes before anything is bound.
  auto made = joined(first, pieces, region);
  make_places(from, from + wanted);
  for (const auto& each : made)
    each_part(each.second, [this](const Part& part) {
      if (!part.whole()) make_page(part);
    });
  for (const auto& each : made)
    each_part(each.second, [&](const Part& part) { fill(part, each.second); });
  pieces_.merge(made);
  STP_ASSERT(made.empty(), "no two pieces begin at the same Bufx");
  bound_ += wanted;
  STP_ASSERT(bound_ <= count_, "no more is bound than the range has");
  return 0;
}

std::size_t BufxRange::unbind(std::uint32_t first, std::uint32_t count, RegionId region) {
  std::size_t cleared = 0;
  const auto end = std::uint64_t{first} + count;
  for (auto at = pieces_.lower_bound(first); at != pieces_.end() && at->first < end;) {
    const auto& piece = at->second;
    if (piece.region != region || std::uint64_t{piece.first} + piece.count > end) {
      ++at;
      continue;
    }
    each_part(piece, [this](const Part& part) { clear(part); });
    cleared += piece.count;
    at = pieces_.erase(at);
  }
  STP_ASSERT(cleared <= bound_, "what is unbound was bound");
  bound_ -= cleared;
  STP_ASSERT((bound_ == 0) == pieces_.empty(), "what is bound lies in pieces");
  recent_ = &kNone;
  if (bound_ == 0) {
    places_ = std::vector<Place>();
    page_bytes_ = 0;  // also of empty pages that a failed bind() left behind
  }
  return cleared;
}

// The pieces as they are bound: joins pieces of adjacent memory.
BufxRange::Pieces BufxRange::joined(std::uint32_t first, std::span<const MutableBytes> pieces,
                                    RegionId region) const {
  Pieces made;
  for (const auto& memory : pieces) {
    const auto count = static_cast<std::uint32_t>(memory.size() >> bufsize_);
    auto* const last = made.empty() ? nullptr : &made.rbegin()->second;
    if (last != nullptr && last->memory + (std::size_t{last->count} << bufsize_) == memory.data())
      last->count += count;
    else
      made[first] = {.first = first, .count = count, .memory = memory.data(), .region = region};
    first += count;
  }
  return made;
}

template <typename Visit>
void BufxRange::each_part(const Piece& piece, Visit&& visit) const {
  const auto to = std::size_t{piece.first - base_} + piece.count;
  for (auto at = std::size_t{piece.first - base_}; at < to; at = (at | (kPageEntries - 1)) + 1)
    visit(part_of(at, to));
}

// The first part of entries [from, to) that is in one page.
BufxRange::Part BufxRange::part_of(std::size_t from, std::size_t to) {
  const auto within = from % kPageEntries;
  return {from >> kPageBits, within, std::min(kPageEntries, within + (to - from))};
}

bool BufxRange::is_free(const Part& part) const {
  const auto* const place = place_at(part.place);
  if (place == nullptr) return true;
  if (place->page == nullptr) return place->piece == nullptr;
  work::count("Bufx", part.to - part.from);
  for (auto at = part.from; at < part.to; ++at)
    if (place->page->find(at) != nullptr) return false;
  return true;
}

// Extends places_ to cover entries [from, to) and all bound ones, no more.
void BufxRange::make_places(std::size_t from, std::size_t to) {
  auto first = from >> kPageBits, last = (to - 1) >> kPageBits;
  if (!places_.empty()) {
    first = std::min(first, first_place_);
    last = std::max(last, first_place_ + places_.size() - 1);
    if (last - first + 1 == places_.size()) return;
  }
  work::count("pages of Bufx", last - first + 1);
  std::vector<Place> more(last - first + 1);
  for (std::size_t at = 0; at < places_.size(); ++at)
    more[first_place_ - first + at] = std::move(places_[at]);
  places_ = std::move(more);
  first_place_ = first;
}

void BufxRange::make_page(const Part& part) {
  auto& page = made_place(part.place).page;
  if (page == nullptr) {
    page = std::make_unique<Page>();
    page_bytes_ += page->bytes();
  }
  const auto before = page->bytes();
  page->reach(part.from, part.to);
  page_bytes_ += page->bytes() - before;
}

void BufxRange::Page::reach(std::size_t from, std::size_t to) {
  if (!entries.empty()) {
    from = std::min(from, first);
    to = std::max(to, first + entries.size());
    if (to - from == entries.size()) return;
  }
  work::count("Bufx", to - from);
  std::vector<const Piece*> more(to - from);
  std::copy(entries.begin(), entries.end(),
            more.begin() + static_cast<std::ptrdiff_t>(entries.empty() ? 0 : first - from));
  entries = std::move(more);
  first = from;
}

void BufxRange::fill(const Part& part, const Piece& piece) {
  auto& place = made_place(part.place);
  work::count("Bufx", part.whole() ? 1 : part.to - part.from);
  STP_ASSERT(place.piece == nullptr, "what is bound was free");
  if (part.whole()) {
    STP_ASSERT(place.page == nullptr || place.page->bound == 0, "what is bound was free");
    if (place.page != nullptr) page_bytes_ -= place.page->bytes();
    place = {.page = nullptr, .piece = &piece};
    return;
  }
  STP_ASSERT(place.page != nullptr, "a page that one piece does not fill has entries");
  auto& page = *place.page;
  STP_ASSERT(part.from >= page.first && part.to - page.first <= page.entries.size(),
             "a page has the entries that are bound");
  for (auto at = part.from; at < part.to; ++at) page.entries[at - page.first] = &piece;
  page.bound += part.to - part.from;
  STP_ASSERT(page.bound <= page.entries.size(), "no more is bound in a page than it has entries");
}

void BufxRange::clear(const Part& part) {
  work::count("Bufx", part.whole() ? 1 : part.to - part.from);
  auto& place = made_place(part.place);
  STP_ASSERT((place.piece == nullptr) == (place.page != nullptr),
             "a place that is bound has one piece or entries");
  place.piece = nullptr;
  if (place.page == nullptr) return;
  auto& page = *place.page;
  STP_ASSERT(part.to - part.from <= page.bound, "what is unbound was bound");
  for (auto at = part.from; at < part.to; ++at) page.entries[at - page.first] = nullptr;
  page.bound -= part.to - part.from;
  if (page.bound != 0) return;
  STP_ASSERT(page.bytes() <= page_bytes_, "the bytes of a page were counted");
  page_bytes_ -= page.bytes();
  place.page.reset();
}

std::size_t BufxRange::growth(std::uint32_t first, std::span<const MutableBytes> pieces) const {
  std::size_t wanted = 0;
  if (check(first, pieces, wanted) != 0) return 0;
  auto at = std::size_t{first} - base_;
  auto low = at >> kPageBits, high = (at + wanted - 1) >> kPageBits;
  if (!places_.empty()) {
    low = std::min(low, first_place_);
    high = std::max(high, first_place_ + places_.size() - 1);
  }
  auto bytes = (high - low + 1 - places_.size()) * sizeof(Place) + pieces.size() * kPieceBytes;
  const auto add = [&](const Part& part) {
    if (part.whole()) return;
    const auto* const place = place_at(part.place);
    const auto* const page = place == nullptr ? nullptr : place->page.get();
    const auto entries = page == nullptr || page->entries.empty()
                             ? part.to - part.from
                             : std::max(part.to, page->first + page->entries.size()) -
                                   std::min(part.from, page->first) - page->entries.size();
    bytes += (page == nullptr ? sizeof(Page) : 0) + entries * sizeof(const Piece*);
  };
  // Only the first and last page of a piece can be partly filled.
  for (const auto& piece : pieces) {
    const auto end = at + (piece.size() >> bufsize_);
    add(part_of(at, end));
    if ((end - 1) >> kPageBits != at >> kPageBits)
      add(part_of((end - 1) & ~(kPageEntries - 1), end));
    at = end;
  }
  return bytes;
}

bool BufxRange::look_up(std::uint64_t bufx) const {
  if (bufx > 0xffffffff) return false;
  const auto index = std::size_t{static_cast<std::uint32_t>(bufx) - base_};
  const auto* const place = place_at(index >> kPageBits);
  if (place == nullptr) return false;
  const auto* const found =
      place->page != nullptr ? place->page->find(index % kPageEntries) : place->piece;
  if (found != nullptr) recent_ = found;
  return found != nullptr;
}

bool BufxRange::covers_on(std::uint32_t bufx, std::uint64_t end) const {
  STP_ASSERT(end > 0, "a run that goes on has a byte");
  const auto buffers = (end - 1) >> bufsize_;
  if (std::uint64_t{bufx} + buffers > 0xffffffff) return false;
  const auto from = std::size_t{bufx - base_}, to = from + buffers + 1;
  for (auto at = from; at < to;) {
    const auto part = part_of(at, to);
    const auto* const place = place_at(part.place);
    work::count("pages of Bufx");
    if (place == nullptr) return false;
    if (place->page == nullptr) {
      if (place->piece == nullptr) return false;
    } else if (place->page->bound != kPageEntries) {
      work::count("Bufx", part.to - part.from);
      for (auto each = part.from; each < part.to; ++each)
        if (place->page->find(each) == nullptr) return false;
    }
    at += part.to - part.from;
  }
  return true;
}

// protocol: 7.4
int MxTable::allocate(const MxEntry& entry, RegionMxs& of_region, VcMxs* of_vc) {
  STP_ASSERT(entry.region != 0, "an Mx is of a region");
  STP_ASSERT(entries_.size() == places_.size(), "each Mx has its place in the lists");
  const bool full = entries_.size() > kMost;
  if (full && free_.empty() && tidy(1) == 0) return -ENOSPC;
  std::uint16_t mx;
  // A freed name rests for a while, so that a late frame does not find it in new hands.
  if (full || free_.size() > kResting) {
    STP_ASSERT(!free_.empty() && entries_[free_.front()].region == 0,
               "a name that is free is live no more");
    mx = free_.front();
    free_.pop_front();
    entries_[mx] = entry;
  } else {
    mx = static_cast<std::uint16_t>(entries_.size());
    entries_.push_back(entry);
    places_.emplace_back().mx = mx;
  }
  STP_ASSERT(mx != 0, "Mx 0 is never given out");
  of_region.push_back(places_[mx]);
  if (of_vc != nullptr) of_vc->push_back(places_[mx]);
  return mx;
}

void MxTable::free(std::uint16_t mx) {
  STP_ASSERT(find(mx) != nullptr, "an Mx that is freed is live");
  entries_[mx] = {};
  auto& place = places_[mx];
  static_cast<ListHook<MxOfRegion>&>(place).unlink();
  static_cast<ListHook<MxOfVc>&>(place).unlink();
  free_.push_back(mx);
}

std::size_t MxTable::tidy(std::size_t most) {
  std::size_t freed = 0;
  for (; freed < most && !of_ended_regions_.empty(); ++freed) free(of_ended_regions_.front().mx);
  for (; freed < most && !of_ended_vcs_.empty(); ++freed) free(of_ended_vcs_.front().mx);
  work::count("Mx of what has ended", freed);
  return freed;
}

// ---- the memory of all endpoints ----

MappedMemory::MappedMemory(Common& common, const PortTable& vcs)
    : common_(common), vcs_(vcs), regions_(common.config.max_regions) {}

int MappedMemory::map(Endpoint& endpoint, Direction direction, std::uint32_t base,
                      std::span<const MutableBytes> pieces, RegionId& out) {
  auto* const region = regions_.add(std::make_unique<Region>());
  if (region == nullptr) return -ENOSPC;
  const auto error =
      within_memory([&] { return endpoint.range(direction).bind(base, pieces, region->id); },
                    [] { return -ENOMEM; });
  if (error != 0) {
    regions_.remove(region->id);
    return error;
  }
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  region->endpoint = &endpoint;
  region->direction = direction;
  region->first = base;
  region->count = static_cast<std::uint32_t>(bytes >> endpoint.config.bufsize);
  ++endpoint.regions;
  out = region->id;
  return 0;
}

// protocol: 7.5
int MappedMemory::unmap(RegionId id) {
  auto* const region = regions_.find(id);
  if (region == nullptr || region->unmapped) return -EBADF;
  // Nothing stays bound: no request or frame finds the memory from here on.
  [[maybe_unused]] const auto unbound =
      region->endpoint->range(region->direction).unbind(region->first, region->count, id);
  STP_ASSERT(unbound == region->count, "what a region has is bound until it is unbound");
  region->unmapped = true;
  mxs_.abandon(region->mxs);
  mxs_.tidy(kTidiedAtOnce);
  if (region->attached == 0) end(*region);
  return 0;
}

[[gnu::noinline]] void MappedMemory::end(Region& region) {
  --region.endpoint->regions;
  common_.event(Event::Kind::kRegionGone, region.id);
  regions_.remove(region.id);
}

int MappedMemory::alloc_mx(RegionId region_id, VcId vc_id, std::uint8_t permissions,
                           std::uint16_t& out) {
  auto* const region = regions_.find(region_id);
  if (region == nullptr || region->unmapped) return -EBADF;
  if (region->direction != Direction::kReceive) return -EINVAL;
  Vc* vc = nullptr;
  if (vc_id != kNoneId) {
    vc = vcs_.find(vc_id);
    if (vc == nullptr) return -EBADF;
    if (vc->endpoint != region->endpoint) return -EINVAL;
  }
  const auto mx = mxs_.allocate({.region = region_id,
                                 .first = region->first,
                                 .count = region->count,
                                 .endpoint = region->endpoint->id,
                                 .vc = vc_id,
                                 .permissions = permissions},
                                region->mxs, vc == nullptr ? nullptr : &vc->mxs);
  if (mx < 0) return mx;
  out = static_cast<std::uint16_t>(mx);
  return 0;
}

int MappedMemory::free_mx(EndpointId endpoint, std::uint16_t mx) {
  const auto* const entry = mxs_.find(mx);
  if (entry == nullptr || entry->endpoint != endpoint || !is_live(*entry)) return -ERANGE;
  mxs_.free(mx);
  return 0;
}

// Whether its region and its connection still exist.
bool MappedMemory::is_live(const MxEntry& mx) const {
  const auto* const region = regions_.find(mx.region);
  if (region == nullptr || region->unmapped) return false;
  return mx.vc == kNoneId || vcs_.find(mx.vc) != nullptr;
}

void MappedMemory::attach(RegionId id, std::uint32_t frames) {
  auto* const region = regions_.find(id);
  STP_ASSERT(region != nullptr && !region->unmapped, "what is sent from is mapped");
  region->attached += frames;
}

bool MappedMemory::detach(RegionId id, std::uint32_t frames) {
  auto* const region = regions_.find(id);
  STP_ASSERT(frames > 0, "a frame has left");
  if (region == nullptr || region->attached < frames) return false;
  if ((region->attached -= frames) == 0 && region->unmapped) end(*region);
  return true;
}

}  // namespace stp
