// SPDX-License-Identifier: BSD-3-Clause
// The library's own memory, registered with a domain: each connection has one block of it, for the
// handshake and for eager messages (see eager.h).
#pragma once

#include <memory>
#include <vector>

#include "libst/managed/memory.h"
#include "stp/base/assert.h"

namespace stp::managed {

inline constexpr std::size_t kHelloSize = 2048;
inline constexpr std::size_t kEagerSlot = 4096;
inline constexpr std::uint32_t kEagerSlots = 16;
inline constexpr std::size_t kStagingBlock = 2 * kHelloSize + 2 * kEagerSlots * kEagerSlot;

// One connection's block.
struct Staging {
  std::byte* base = nullptr;
  Memory* memory = nullptr;

  [[nodiscard]] std::byte* hello_out() const { return base; }
  [[nodiscard]] std::byte* hello_in() const { return base + kHelloSize; }
  [[nodiscard]] std::byte* eager_out(std::uint32_t slot) const {
    return base + 2 * kHelloSize + slot * kEagerSlot;
  }
  [[nodiscard]] std::byte* eager_in(std::uint32_t slot) const {
    return eager_out(kEagerSlots + slot);
  }
};

class StagingArea {
 public:
  // The caller holds the domain's control mutex but not the domain's own. Returns 0 or a negative
  // errno.
  int grow(const std::shared_ptr<Domain>& domain);
  // The other functions need the domain's own mutex.
  [[nodiscard]] bool has_free() const { return !free_.empty(); }
  Staging take();
  void give_back(const Staging& block) {
    STP_ASSERT(block.base != nullptr && free_.size() < blocks_,
               "a block that comes back was taken");
    free_.push_back(block);
  }
  // Under the control mutex. No block is in use.
  void unbind();

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte, Unmap> bytes;
    std::shared_ptr<Memory> memory;
  };
  // Blocks per chunk: as many as there are already, within these bounds. Each chunk costs the
  // service several requests.
  static constexpr std::size_t kFewest = 8, kMost = 256;
  std::size_t blocks_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<Staging> free_;
};

}  // namespace stp::managed
