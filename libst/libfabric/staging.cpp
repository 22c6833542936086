// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/staging.h"

#include <cerrno>
#include <cstdlib>

namespace stp::fi {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

void FreeBlock::operator()(std::byte* data) const {
  std::free(data);
}

std::unique_ptr<std::byte, FreeBlock> allocate(std::size_t size) {
  const auto whole = (size + kPage - 1) / kPage * kPage;
  return std::unique_ptr<std::byte, FreeBlock>(
      static_cast<std::byte*>(std::aligned_alloc(kPage, whole)));
}

int Slots::take(Span& out) {
  if (free_.empty()) {
    auto block = allocate(size_ * at_a_time_);
    if (!block) return -ENOMEM;
    free_.reserve(free_.capacity() + at_a_time_);
    stm_memory_t memory = nullptr;
    const auto error =
        stm_memory_register(domain_, block.get(), size_ * at_a_time_, STM_LOCAL_WRITE, &memory);
    if (error != 0) return error;
    for (std::size_t i = 0; i < at_a_time_; ++i) free_.push_back({block.get() + i * size_, memory});
    blocks_.push_back(std::move(block));
  }
  out.data = free_.back().data;
  out.memory = free_.back().memory;
  out.slots = this;
  free_.pop_back();
  return 0;
}

void Span::give_up() {
  if (slots != nullptr) slots->give_back(*this);
  if (registered) stm_memory_release(memory);
  *this = {};
}

}  // namespace stp::fi
