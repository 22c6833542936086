// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/staging.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "libst/include/stp/managed.h"
#include "libst/managed/domain.h"
#include "stp/base/assert.h"

namespace stp::managed {

void StagingArea::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, size);
}

int StagingArea::grow(const std::shared_ptr<Domain>& domain) {
  const auto align = std::size_t{1} << domain->bufsize();
  const auto blocks = std::clamp(blocks_, kFewest, kMost);
  const auto size = (blocks * kStagingBlock + align - 1) / align * align;
  const auto room = size + align;
  auto* const mapped =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return -errno;
  Chunk chunk{{static_cast<std::byte*>(mapped), Unmap{room}}, nullptr};
  void* start = mapped;
  auto left = room;
  std::align(align, size, start, left);
  auto* const base = static_cast<std::byte*>(start);
  chunk.memory = std::make_shared<Memory>(domain, MutableBytes{base, size}, STM_LOCAL_WRITE);
  if (const auto error = domain->add_memory(chunk.memory); error != 0) return error;
  std::lock_guard const guard(domain->mutex());
  blocks_ += blocks;
  for (std::size_t i = 0; i < blocks; ++i)
    free_.push_back({base + i * kStagingBlock, chunk.memory.get()});
  chunks_.push_back(std::move(chunk));
  return 0;
}

Staging StagingArea::take() {
  STP_ASSERT(!free_.empty(), "a block is taken where there is one");
  const auto block = free_.back();
  free_.pop_back();
  return block;
}

void StagingArea::unbind() {
  free_.clear();
  for (const auto& chunk : chunks_) chunk.memory->unbind();
  chunks_.clear();
}

}  // namespace stp::managed
