// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/lent_ranges.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "libst/ipc/shared_memory.h"
#include "stp/base/assert.h"

namespace stp::client {
namespace {

using Changes = std::map<std::uintptr_t, int>;

Span filled_pages(Bytes bytes) {
  const auto page = ipc::page_size();
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {(at + page - 1) / page * page, (at + bytes.size()) / page * page};
}

Span touched_pages(Bytes bytes) {
  const auto page = ipc::page_size();
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {at / page * page, (at + bytes.size() + page - 1) / page * page};
}

void change(Changes& changes, Span span, int by) {
  if (span.empty()) return;
  if ((changes[span.begin] += by) == 0) changes.erase(span.begin);
  if ((changes[span.end] -= by) == 0) changes.erase(span.end);
}

void advise(Span span, int advice) {
  ::madvise(reinterpret_cast<void*>(span.begin), span.size(), advice);
}

}  // namespace

void LentRanges::add(Bytes bytes) {
  const auto filled = filled_pages(bytes);
  change(filled_, filled, 1);
  change(touched_, touched_pages(bytes), 1);
  if (!filled.empty()) advise(filled, MADV_DONTFORK);
}

void LentRanges::forget(Bytes bytes) {
  change(filled_, filled_pages(bytes), -1);
  change(touched_, touched_pages(bytes), -1);
}

// realloc() grows a block that is a mapping of its own with mremap(), but a memfd does not grow.
// Other (harmless) advice for the first page splits the pages into two areas. mremap() cannot
// extend two areas, so realloc() copies.
void LentRanges::keep_from_growing(Bytes bytes) {
  const auto page = ipc::page_size();
  const auto pages = touched_pages(bytes);
  if (pages.size() > page) advise({pages.begin, pages.begin + page}, MADV_SEQUENTIAL);
}

void LentRanges::remove(Bytes bytes) {
  forget(bytes);
  keep_from_growing(bytes);
  const auto filled = filled_pages(bytes);
  if (filled.empty()) return;
  for (const auto& part : parts(filled))
    if (part.kind != Kind::kFilled) advise(part.span, MADV_DOFORK);
}

void LentRanges::leave_out() const {
  int filled = 0;
  std::uintptr_t begin = 0;
  for (const auto& [at, by] : filled_) {
    if (filled == 0) begin = at;
    filled += by;
    STP_ASSERT(filled >= 0, "no more is taken back than was lent");
    if (filled == 0) advise({begin, at}, MADV_DONTFORK);
  }
  STP_ASSERT(filled == 0, "each lending has an end");
}

std::vector<LentRanges::Part> LentRanges::parts(Span area) const {
  std::vector<Part> out;
  auto filling = filled_.begin(), touching = touched_.begin();
  int filled = 0, touched = 0;
  for (auto at = area.begin; at < area.end;) {
    for (; filling != filled_.end() && filling->first <= at; ++filling) filled += filling->second;
    for (; touching != touched_.end() && touching->first <= at; ++touching)
      touched += touching->second;
    STP_ASSERT(filled >= 0 && touched >= filled, "what is lent whole is touched as often at least");
    auto next = area.end;
    if (filling != filled_.end()) next = std::min(next, filling->first);
    if (touching != touched_.end()) next = std::min(next, touching->first);
    const auto kind = filled > 0 ? Kind::kFilled : touched > 0 ? Kind::kMixed : Kind::kFree;
    if (!out.empty() && out.back().kind == kind)
      out.back().span.end = next;
    else
      out.push_back({{at, next}, kind});
    at = next;
  }
  return out;
}

namespace {

MappedArea part_of(const MappedArea& area, Span span) {
  auto part = area;
  part.begin = span.begin;
  part.end = span.end;
  part.offset = area.offset + (span.begin - area.begin);
  return part;
}

}  // namespace

bool is_region(const MappedArea& area) {
  return area.shared && area.name.starts_with(std::string("/memfd:") + kRegionName);
}

void Placements::add(Span pages, std::uint64_t inode, std::uint64_t offset) {
  if (by_begin_.size() + lost_.size() >= look_at_) {
    std::vector<MappedArea> there;
    find(there);
    look_at_ = std::max(kLook, 2 * by_begin_.size());
  }
  clear(pages);
  const auto added = by_begin_.insert_or_assign(pages.begin, File{pages.end, inode, offset}).first;
  STP_ASSERT(
      !pages.empty() && (added == by_begin_.begin() || std::prev(added)->second.end <= pages.begin),
      "what is placed overlaps nothing before it");
  STP_ASSERT(std::next(added) == by_begin_.end() || pages.end <= std::next(added)->first,
             "what is placed overlaps nothing behind it");
}

void Placements::clear(Span pages) {
  auto at = by_begin_.upper_bound(pages.begin);
  if (at != by_begin_.begin() && std::prev(at)->second.end > pages.begin) --at;
  while (at != by_begin_.end() && at->first < pages.end) {
    const auto [begin, file] = *at;
    at = by_begin_.erase(at);
    lose({std::max(begin, pages.begin), std::min(file.end, pages.end)}, begin, file);
    if (begin < pages.begin) by_begin_[begin] = {pages.begin, file.inode, file.offset};
    if (file.end > pages.end)
      by_begin_[pages.end] = {file.end, file.inode, file.offset + (pages.end - begin)};
  }
}

// `part` of what was placed at `begin` is not there any more.
void Placements::lose(Span part, std::uintptr_t begin, const File& file) {
  if (part.empty()) return;
  lost_.push_back({.inode = file.inode,
                   .begin = file.offset + (part.begin - begin),
                   .end = file.offset + (part.end - begin)});
}

void Placements::lose_missing(const Files& still) {
  for (const auto& [begin, file] : by_begin_) {
    auto from = begin;
    for (auto at = still.lower_bound(begin); at != still.end() && at->first < file.end; ++at) {
      lose({from, at->first}, begin, file);
      from = at->second.end;
    }
    lose({from, file.end}, begin, file);
  }
}

// Finds the parts of the area that show what is lost.
void Placements::find_moved(const MappedArea& area, Files& still,
                            std::vector<MappedArea>& out) const {
  const auto end = area.offset + (area.end - area.begin);
  for (const auto& lost : lost_) {
    if (lost.inode != area.inode || lost.begin >= end || lost.end <= area.offset) continue;
    const Span span{area.begin + (std::max(lost.begin, area.offset) - area.offset),
                    area.begin + (std::min(lost.end, end) - area.offset)};
    const auto next = still.lower_bound(span.end);
    if (next != still.begin() && std::prev(next)->second.end > span.begin) continue;
    out.push_back(part_of(area, span));
    still[span.begin] = {span.end, area.inode, out.back().offset};
  }
}

void Placements::advise(int advice) const {
  for (const auto& [begin, file] : by_begin_)
    ::madvise(reinterpret_cast<void*>(begin), file.end - begin, advice);
}

bool Placements::find(std::vector<MappedArea>& out) {
  if (by_begin_.empty() && lost_.empty()) return true;
  std::vector<MappedArea> areas;
  if (!areas_where([](const MappedArea& a) { return a.shared && a.inode != 0; }, areas))
    return false;
  Files still;
  for (const auto& area : areas) {
    auto at = by_begin_.upper_bound(area.begin);
    if (at != by_begin_.begin()) --at;
    for (; at != by_begin_.end() && at->first < area.end; ++at) {
      const auto& [begin, file] = *at;
      const Span common{std::max(begin, area.begin), std::min(file.end, area.end)};
      const auto offset = area.offset + (common.begin - area.begin);
      if (common.empty() || file.inode != area.inode ||
          offset != file.offset + (common.begin - begin))
        continue;
      still[common.begin] = {common.end, file.inode, offset};
      out.push_back(part_of(area, common));
    }
  }
  lose_missing(still);
  for (const auto& area : areas)
    if (!lost_.empty() && is_region(area)) find_moved(area, still, out);
  by_begin_ = std::move(still);
  lost_.clear();
  return true;
}

}  // namespace stp::client
