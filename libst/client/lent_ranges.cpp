// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/lent_ranges.h"

#include <sys/mman.h>

#include <algorithm>

#include "libst/service/shared_memory.h"
#include "stp/base/assert.h"

namespace stp::client {
namespace {

using Changes = std::map<std::uintptr_t, int>;

Span filled_pages(Bytes bytes) {
  const auto page = service::page_size();
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {(at + page - 1) / page * page, (at + bytes.size()) / page * page};
}

Span touched_pages(Bytes bytes) {
  const auto page = service::page_size();
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
  const auto page = service::page_size();
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

}  // namespace stp::client
