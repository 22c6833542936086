// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/buffers.h"

#include <algorithm>
#include <cerrno>

namespace stp::fi::rdm {

BufferBlock::~BufferBlock() {
  if (memory != nullptr) stm_memory_release(memory);
}

int Buffers::add_block() {
  constexpr auto kBytes = BufferBlock::kBuffers * kBuffer;
  auto& block = blocks_.emplace_front();
  block.bytes = allocate(kBytes);
  const auto error = !block.bytes ? -ENOMEM
                                  : stm_memory_register(domain_, block.bytes.get(), kBytes,
                                                        STM_LOCAL_WRITE, &block.memory);
  if (error != 0) {
    blocks_.pop_front();
    return error;
  }
  for (std::size_t i = 0; i < BufferBlock::kBuffers; ++i) {
    auto& buffer = block.buffers[i];
    buffer.data = block.bytes.get() + i * kBuffer;
    buffer.block = &block;
    block.free.push_back(&buffer);
  }
  return 0;
}

int Buffers::take(bool further, Buffer*& out) {
  if (further && shared_ == kShared) return -ENOBUFS;
  auto with_room =
      std::ranges::find_if(blocks_, [](const auto& each) { return !each.free.empty(); });
  if (with_room == blocks_.end()) {
    if (const auto error = add_block(); error != 0) return error;
    with_room = blocks_.begin();
  }
  out = with_room->free.back();
  with_room->free.pop_back();
  if (further) ++shared_;
  return 0;
}

// One block that is free as a whole stays, for who connects next.
void Buffers::give_back(Buffer& buffer, bool further) {
  if (further) --shared_;
  buffer.owner = nullptr;
  auto& block = *buffer.block;
  block.free.push_back(&buffer);
  const auto is_free = [](const BufferBlock& each) {
    return each.free.size() == BufferBlock::kBuffers;
  };
  if (!is_free(block) || std::ranges::count_if(blocks_, is_free) == 1) return;
  blocks_.remove_if([&](const BufferBlock& each) { return &each == &block; });
}

}  // namespace stp::fi::rdm
