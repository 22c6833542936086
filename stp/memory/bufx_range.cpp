// SPDX-License-Identifier: BSD-3-Clause
#include "stp/memory/bufx_range.h"

#include <cerrno>

#include "stp/base/work_meter.h"

namespace stp {

// protocol: 7.2
int BufxRange::check(std::uint32_t first, std::span<const MutableBytes> pieces,
                     std::size_t& wanted) const {
  auto const size = std::size_t{1} << bufsize_;
  wanted = 0;
  if (pieces.size() > kMaxPieces) return -EINVAL;
  for (auto const& piece : pieces) {
    if (piece.empty() || piece.size() % size != 0) return -EINVAL;
    wanted += piece.size() / size;
  }
  if (wanted == 0) return -EINVAL;
  if (first < base_ || std::uint64_t{first} - base_ + wanted > count_) return -ERANGE;
  return first - base_ + wanted > kMaxReach ? -ENOMEM : 0;
}

int BufxRange::bind(std::uint32_t first, std::span<const MutableBytes> pieces, RegionId region) {
  std::size_t wanted = 0;
  if (auto const error = check(first, pieces, wanted); error != 0) return error;
  auto const from = std::size_t{first} - base_;
  for (auto at = from; at < from + wanted; at = (at | (kPageEntries - 1)) + 1)
    if (!is_free(part_of(at, from + wanted))) return -EBUSY;

  // All that can fail comes before anything is bound.
  make_places(from, from + wanted);
  auto const each_part = [&](auto&& visit) {
    auto at = from;
    for (auto const& piece : pieces) {
      auto const end = at + (piece.size() >> bufsize_);
      for (auto* memory = piece.data(); at < end;) {
        auto const part = part_of(at, end);
        visit(part, memory);
        memory += (part.to - part.from) << bufsize_;
        at += part.to - part.from;
      }
    }
  };
  each_part([this](const Part& part, std::byte*) {
    if (!part.whole()) make_page(part);
  });
  each_part([&](const Part& part, std::byte* memory) { fill(part, memory, region); });
  bound_ += wanted;
  if (pieces.size() == 1 && wanted > main_.count)
    main_ = {first, static_cast<std::uint32_t>(wanted), pieces.front().data(), region};
  return 0;
}

std::size_t BufxRange::unbind(std::uint32_t first, std::uint32_t count, RegionId region) {
  std::size_t cleared = 0;
  auto const from = std::size_t{first} - base_, to = from + count;
  for (auto at = from; at < to; at = (at | (kPageEntries - 1)) + 1)
    cleared += clear(part_of(at, to), region);
  bound_ -= cleared;
  if (main_.region == region) main_ = {};
  if (bound_ == 0) places_ = std::vector<Place>();
  return cleared;
}

// The first part of entries [from, to) that is in one page.
BufxRange::Part BufxRange::part_of(std::size_t from, std::size_t to) {
  auto const within = from % kPageEntries;
  return {from >> kPageBits, within, std::min(kPageEntries, within + (to - from))};
}

bool BufxRange::is_free(const Part& part) const {
  auto const* const place = place_at(part.place);
  if (place == nullptr) return true;
  if (place->page == nullptr) return place->memory == nullptr;
  work::count("Bufx", part.to - part.from);
  for (auto at = part.from; at < part.to; ++at)
    if (place->page->find(at).memory != nullptr) return false;
  return true;
}

// There are places for entries [from, to), and none for what is neither there nor bound.
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
  auto const before = page->bytes();
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
  std::vector<Entry> more(to - from);
  std::copy(entries.begin(), entries.end(),
            more.begin() + static_cast<std::ptrdiff_t>(entries.empty() ? 0 : first - from));
  entries = std::move(more);
  first = from;
}

void BufxRange::fill(const Part& part, std::byte* memory, RegionId region) {
  auto& place = made_place(part.place);
  work::count("Bufx", part.whole() ? 1 : part.to - part.from);
  if (part.whole()) {
    if (place.page != nullptr) page_bytes_ -= place.page->bytes();
    place = {.page = nullptr, .memory = memory, .region = region};
    return;
  }
  auto& page = *place.page;
  for (auto at = part.from; at < part.to; ++at, memory += std::size_t{1} << bufsize_)
    page.entries[at - page.first] = {memory, region};
  page.bound += part.to - part.from;
}

std::size_t BufxRange::clear(const Part& part, RegionId region) {
  if (place_at(part.place) == nullptr) return 0;
  work::count("pages of Bufx");
  auto& place = made_place(part.place);
  if (place.page == nullptr) {
    if (place.memory == nullptr || place.region != region || !part.whole()) return 0;
    place = {};
    return kPageEntries;
  }
  auto& page = *place.page;
  std::size_t cleared = 0;
  work::count("Bufx", part.to - part.from);
  for (auto at = part.from; at < part.to; ++at) {
    if (page.find(at).memory == nullptr || page.find(at).region != region) continue;
    page.entries[at - page.first] = {};
    ++cleared;
  }
  page.bound -= cleared;
  if (page.bound == 0) {
    page_bytes_ -= page.bytes();
    place.page.reset();
  }
  return cleared;
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
  auto bytes = (high - low + 1 - places_.size()) * sizeof(Place);
  auto const add = [&](const Part& part) {
    if (part.whole()) return;
    auto const* const place = place_at(part.place);
    auto const* const page = place == nullptr ? nullptr : place->page.get();
    auto const entries = page == nullptr || page->entries.empty()
                             ? part.to - part.from
                             : std::max(part.to, page->first + page->entries.size()) -
                                   std::min(part.from, page->first) - page->entries.size();
    bytes += (page == nullptr ? sizeof(Page) : 0) + entries * sizeof(Entry);
  };
  // Only at its ends does a piece not fill a page.
  for (auto const& piece : pieces) {
    auto const end = at + (piece.size() >> bufsize_);
    add(part_of(at, end));
    if ((end - 1) >> kPageBits != at >> kPageBits)
      add(part_of((end - 1) & ~(kPageEntries - 1), end));
    at = end;
  }
  return bytes;
}

Bytes BufxRange::look_up_run(std::uint64_t at, std::uint64_t length, RegionId& region) const {
  auto const left = (std::uint64_t{1} << bufsize_) - offset_of(at);
  if (at >> bufsize_ > 0xffffffff) return {};
  auto const entry = look_up(static_cast<std::uint32_t>(at >> bufsize_));
  if (entry.memory == nullptr) return {};
  region = entry.region;
  auto const* const start = entry.memory + offset_of(at);
  if (length <= left) return {start, static_cast<std::size_t>(length)};
  return {start,
          static_cast<std::size_t>(std::min(left + run_on(at, length - left, entry), length))};
}

bool BufxRange::look_up_all(std::uint32_t bufx, std::uint32_t offset, std::uint64_t length) const {
  auto const size = std::uint64_t{1} << bufsize_;
  if (find(bufx).memory == nullptr) return false;
  return offset + length <= size || covers_on(bufx, offset + length);
}

std::uint64_t BufxRange::run_on(std::uint64_t at, std::uint64_t length, const Entry& first) const {
  auto const size = std::uint64_t{1} << bufsize_;
  auto bufx = at >> bufsize_;
  std::uint64_t found = 0;
  while (found < length && ++bufx <= 0xffffffff) {
    auto const next = find(static_cast<std::uint32_t>(bufx));
    if (next.memory == nullptr || next.region != first.region ||
        next.memory != first.memory + size + found)
      break;
    found += size;
  }
  work::count("Bufx", found >> bufsize_);
  return found;
}

bool BufxRange::covers_on(std::uint32_t bufx, std::uint64_t end) const {
  auto const buffers = (end - 1) >> bufsize_;
  if (std::uint64_t{bufx} + buffers > 0xffffffff) return false;
  auto const from = std::size_t{bufx - base_}, to = from + buffers + 1;
  for (auto at = from; at < to;) {
    auto const part = part_of(at, to);
    auto const* const place = place_at(part.place);
    work::count("pages of Bufx");
    if (place == nullptr) return false;
    if (place->page == nullptr) {
      if (place->memory == nullptr) return false;
    } else if (place->page->bound != kPageEntries) {
      work::count("Bufx", part.to - part.from);
      for (auto each = part.from; each < part.to; ++each)
        if (place->page->find(each).memory == nullptr) return false;
    }
    at += part.to - part.from;
  }
  return true;
}

}  // namespace stp
