// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/iov.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

Staging& Staging::operator=(Staging&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(memory_, other.memory_);
  return *this;
}

void Staging::reset() {
  STP_ASSERT(data_ == nullptr || pool_ != nullptr, "a buffer has a pool");
  if (data_ != nullptr) pool_->free_.emplace(size_, StagingPool::Free{data_, memory_});
  data_ = nullptr;
}

// The domain has been closed, so nothing is registered any more.
StagingPool::~StagingPool() {
  for (const auto& [size, buffer] : free_) std::free(buffer.data);
}

int StagingPool::take(std::size_t size, Staging& out) {
  size = std::bit_ceil(std::max(size, kPage));
  if (const auto found = free_.find(size); found != free_.end()) {
    out = Staging(*this, found->second.data, size, found->second.memory);
    free_.erase(found);
    return 0;
  }
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kPage, size));
  if (data == nullptr) return -ENOMEM;
  stm_memory_t memory = nullptr;
  const auto error = stm_memory_register(domain_, data, size, STM_LOCAL_WRITE, &memory);
  if (error != 0) {
    std::free(data);
    return error;
  }
  out = Staging(*this, data, size, memory);
  return 0;
}

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
