// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/staging.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <utility>

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

}  // namespace stp::udapl
