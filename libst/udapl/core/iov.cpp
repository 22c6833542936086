// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/iov.h"

#include <algorithm>
#include <cstring>

#include "libst/udapl/core/ia.h"

namespace stp::udapl {

Result Iov::assign(Ia& ia, const Pz& pz, std::span<const LmrTriplet> segments, unsigned privilege) {
  if (segments.size() > static_cast<std::size_t>(kMaxIov)) return Result::kInvalidParameter;
  Lmr* first = nullptr;
  for (const auto& segment : segments) {
    if (segment.length == 0) continue;
    auto* const lmr = ia.find_lmr(segment.context);
    if (lmr == nullptr) return Result::kPrivilegesViolation;
    if (&lmr->pz() != &pz) return Result::kProtectionViolation;
    if (!lmr->allows(privilege)) return Result::kPrivilegesViolation;
    auto* const data = lmr->part(segment);
    if (data == nullptr) return Result::kInvalidParameter;
    if (length_ != 0 && segments_.empty())
      segments_.push_back({data_, length_, first->shared_from_this()});
    if (length_ != 0) segments_.push_back({data, segment.length, lmr->shared_from_this()});
    if (length_ == 0) first = lmr;
    memory_ = lmr->memory();
    data_ = data;
    length_ += segment.length;
  }
  if (segments_.empty()) return Result::kSuccess;
  if (const auto error = ia.staging().take(length_, staging_); error != 0) return result_of(error);
  memory_ = staging_.memory();
  data_ = staging_.data();
  return Result::kSuccess;
}

void Iov::gather() const {
  auto* to = data_;
  for (const auto& segment : segments_) {
    std::memcpy(to, segment.data, segment.length);
    to += segment.length;
  }
}

bool Iov::scatter(std::size_t length) const {
  if (std::ranges::any_of(segments_, [](const auto& segment) { return segment.lmr->freed(); }))
    return false;
  const auto* from = data_;
  for (const auto& segment : segments_) {
    const auto part = std::min(length, segment.length);
    if (part == 0) break;
    std::memcpy(segment.data, from, part);
    from += part;
    length -= part;
  }
  return true;
}

}  // namespace stp::udapl
