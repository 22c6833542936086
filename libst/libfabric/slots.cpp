// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/slots.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

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

int Slots::add(std::size_t count) {
  auto block = allocate(size_ * count);
  if (!block) return -ENOMEM;
  free_.reserve(made_ + count);
  blocks_.reserve(blocks_.size() + 1);
  stm_memory_t memory = nullptr;
  const auto error =
      stm_memory_register(domain_, block.get(), size_ * count, STM_LOCAL_WRITE, &memory);
  if (error != 0) return error;
  for (std::size_t i = 0; i < count; ++i) free_.push_back({block.get() + i * size_, memory});
  blocks_.push_back(std::move(block));
  made_ += count;
  return 0;
}

// Where there is no room for a long one, a short one may do.
int Slots::add_batch() {
  auto error = add(next_);
  if (error != 0 && next_ > first_) error = add(next_ = first_);
  if (error == 0) next_ = std::min(2 * next_, most_);
  return error;
}

int Slots::take(Span& out) {
  if (free_.empty())
    if (const auto error = add_batch(); error != 0) return error;
  out.data = free_.back().data;
  out.memory = free_.back().memory;
  out.slots = this;
  free_.pop_back();
  return 0;
}

void Span::give_up() {
  if (slots != nullptr) slots->give_back(*this);
  if (registered != nullptr) registered->give_back();
  *this = {};
}

}  // namespace stp::fi
