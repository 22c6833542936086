// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/memory.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace stp::fi {

int read_segments(const iovec* iov, void** desc, std::size_t count, Segments& out) {
  if (count > kSegments) return -FI_EINVAL;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    out.iov[i] = iov[i];
    out.desc[i] = desc != nullptr ? desc[i] : nullptr;
    out.length += iov[i].iov_len;
  }
  return 0;
}

Segments one_segment(const void* buffer, std::size_t length, void* desc) {
  Segments one;
  one.count = 1;
  one.iov[0] = {const_cast<void*>(buffer), length};
  one.desc[0] = desc;
  one.length = length;
  return one;
}

Segments shortened(const Segments& segments, std::size_t length) {
  auto result = segments;
  result.length = std::min(length, segments.length);
  auto left = result.length;
  for (std::size_t i = 0; i < result.count; ++i) {
    result.iov[i].iov_len = std::min(result.iov[i].iov_len, left);
    left -= result.iov[i].iov_len;
  }
  return result;
}

Segments without(const Segments& segments, std::size_t length) {
  auto result = segments;
  result.length -= std::min(length, result.length);
  for (std::size_t i = 0; i < result.count; ++i) {
    auto& part = result.iov[i];
    const auto left_out = std::min(length, part.iov_len);
    if (left_out != 0) part.iov_base = static_cast<std::byte*>(part.iov_base) + left_out;
    part.iov_len -= left_out;
    length -= left_out;
  }
  return result;
}

void gather(const Segments& from, std::byte* to) {
  for (std::size_t i = 0; i < from.count; ++i) {
    if (from.iov[i].iov_len != 0) std::memcpy(to, from.iov[i].iov_base, from.iov[i].iov_len);
    to += from.iov[i].iov_len;
  }
}

[[gnu::noinline]] void scatter(const std::byte* from, const Segments& to, std::size_t length) {
  for (std::size_t i = 0; i < to.count && length != 0; ++i) {
    const auto part = std::min(length, to.iov[i].iov_len);
    if (part == 0) continue;
    std::memcpy(to.iov[i].iov_base, from, part);
    from += part;
    length -= part;
  }
}

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
