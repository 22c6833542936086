// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/placements.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "stp/base/assert.h"

namespace stp::client {

void Placements::add(Span pages, std::uint64_t inode, std::uint64_t offset) {
  if (by_begin_.size() >= look_at_) {
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
    if (begin < pages.begin) by_begin_[begin] = {pages.begin, file.inode, file.offset};
    if (file.end > pages.end)
      by_begin_[pages.end] = {file.end, file.inode, file.offset + (pages.end - begin)};
  }
}

void Placements::advise(int advice) const {
  for (const auto& [begin, file] : by_begin_)
    ::madvise(reinterpret_cast<void*>(begin), file.end - begin, advice);
}

bool Placements::find(std::vector<MappedArea>& out) {
  if (by_begin_.empty()) return true;
  std::vector<MappedArea> areas;
  if (!areas_where([](const MappedArea& a) { return a.shared && a.inode != 0; }, areas))
    return false;
  std::map<std::uintptr_t, File> still;
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
      auto part = area;
      part.begin = common.begin;
      part.end = common.end;
      part.offset = offset;
      still[part.begin] = {part.end, part.inode, offset};
      out.push_back(std::move(part));
    }
  }
  by_begin_ = std::move(still);
  return true;
}

}  // namespace stp::client
