// SPDX-License-Identifier: BSD-3-Clause
// Where the Blocks begin that the peer's CTS permit. A user's request names the address of the
// bytes it sends, which is inside the Block where it repeats a tail; from both follows the number
// of the first STU (docs/protocol.md, section 8).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stp {

class PermittedBlocks {
 public:
  void remember(std::uint32_t r_id, std::uint32_t b_num, std::uint64_t start) {
    for (auto& block : blocks_)
      if (block.r_id == r_id && block.b_num == b_num) return void(block.start = start);
    if (blocks_.size() < kCapacity)
      blocks_.push_back({r_id, b_num, start});
    else
      blocks_[next_++ % kCapacity] = {r_id, b_num, start};
  }
  // The linear address of its first byte; none for a Block that no CTS permitted, or long ago.
  [[nodiscard]] std::optional<std::uint64_t> start_of(std::uint32_t r_id,
                                                      std::uint32_t b_num) const {
    for (auto const& block : blocks_)
      if (block.r_id == r_id && block.b_num == b_num) return block.start;
    return std::nullopt;
  }
  void clear() { blocks_ = {}; }

 private:
  static constexpr std::size_t kCapacity = 64;
  struct Block {
    std::uint32_t r_id, b_num;
    std::uint64_t start;
  };
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
};

}  // namespace stp
