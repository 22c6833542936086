// SPDX-License-Identifier: BSD-3-Clause
// The start addresses of the Blocks that the peer's CTS permit. A user's request names the address
// of its bytes, which is inside the Block if it repeats the Block's tail. From both follows the
// number of the first STU (docs/protocol.md, section 8).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "stp/base/work_meter.h"

namespace stp {

// Looked up for each DATA of a user, so it is sorted. When full, the oldest entry is replaced.
class PermittedBlocks {
 public:
  void remember(std::uint32_t r_id, std::uint32_t b_num, std::uint64_t start) {
    const auto key = key_of(r_id, b_num);
    auto at = place_of(key);
    if (at != blocks_.end() && at->key == key) {
      at->start = start;
      return renew(key);
    }
    if (keys_.size() < kCapacity) {
      keys_.push_back(key);
    } else {
      auto& oldest = keys_[next_++ % kCapacity];
      blocks_.erase(place_of(oldest));
      oldest = key;
      at = place_of(key);
    }
    blocks_.insert(at, {key, start});
  }
  // The linear address of the Block's first byte; nullopt if no CTS permitted it, or too long ago.
  [[nodiscard]] std::optional<std::uint64_t> start_of(std::uint32_t r_id,
                                                      std::uint32_t b_num) const {
    if (blocks_.empty()) return std::nullopt;
    const auto key = key_of(r_id, b_num);
    const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), key, before);
    if (at == blocks_.end() || at->key != key) return std::nullopt;
    return at->start;
  }
  void clear() { *this = {}; }

 private:
  static constexpr std::size_t kCapacity = 64;
  struct Block {
    std::uint64_t key, start;
  };
  static std::uint64_t key_of(std::uint32_t r_id, std::uint32_t b_num) {
    return std::uint64_t{r_id} << 32 | b_num;
  }
  static bool before(const Block& block, std::uint64_t key) { return block.key < key; }
  std::vector<Block>::iterator place_of(std::uint64_t key) {
    return std::lower_bound(blocks_.begin(), blocks_.end(), key, before);
  }

  // Makes a repeated CTS the newest: the user is about to send its Block from the middle.
  void renew(std::uint64_t key) {
    const auto newest = (next_ + keys_.size() - 1) % keys_.size();
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    auto at = static_cast<std::size_t>(found - keys_.begin());
    work::count("CTS remembered", keys_.size());
    for (; at != newest; at = (at + 1) % keys_.size()) keys_[at] = keys_[(at + 1) % keys_.size()];
    keys_[newest] = key;
  }

  std::vector<Block> blocks_;        // by key
  std::vector<std::uint64_t> keys_;  // in order of arrival, from next_ on
  std::size_t next_ = 0;
};

}  // namespace stp
