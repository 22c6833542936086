// SPDX-License-Identifier: BSD-3-Clause
// A range of Bufx values, [base, base + count), and the user memory bound to each (section 7).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stp/types.h"

namespace stp {

using RegionId = std::uint64_t;

// protocol: 7.1
class BufxRange {
 public:
  struct Entry {
    std::byte* memory = nullptr;  // nullptr: nothing bound
    RegionId region = 0;
  };

  BufxRange() = default;
  BufxRange(std::uint32_t base, std::uint32_t count, unsigned bufsize)
      : base_(base), count_(count), bufsize_(bufsize) {}

  [[nodiscard]] std::uint32_t base() const { return base_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] unsigned bufsize() const { return bufsize_; }

  // Entries from `base` on that can be bound: they are kept as a table, to be looked up by index.
  static constexpr std::size_t kMaxReach = std::size_t{1} << 24;

  // 0, or -ERANGE (not in the range), -ENOMEM (beyond kMaxReach), -EBUSY (an entry is taken),
  // -EINVAL (not whole buffers).
  int bind(std::uint32_t first, std::span<const MutableBytes> pieces, RegionId region);
  void unbind(std::uint32_t first, std::uint32_t count);

  // Entry of `bufx`, or nullptr when it is outside the range or nothing is bound.
  [[nodiscard]] const Entry* find(std::uint32_t bufx) const {
    auto const index = bufx - base_;
    return index < entries_.size() && entries_[index].memory != nullptr ? &entries_[index]
                                                                        : nullptr;
  }
  // The longest run of memory, at most `length` bytes, that begins `at` (a linear address) and is
  // contiguous and of one region. Empty where nothing is bound.
  [[nodiscard]] Bytes run(std::uint64_t at, std::uint64_t length, RegionId& region) const {
    auto const left = (std::uint64_t{1} << bufsize_) - offset_of(at);
    if (at >> bufsize_ > 0xffffffff) return {};
    auto const* const entry = find(static_cast<std::uint32_t>(at >> bufsize_));
    if (entry == nullptr) return {};
    region = entry->region;
    auto const* const start = entry->memory + offset_of(at);
    if (length <= left) return {start, static_cast<std::size_t>(length)};
    return {start, static_cast<std::size_t>(std::min(left + run_on(at, length - left), length))};
  }

  // Whether `length` bytes from (bufx, offset) on are all bound; an empty run needs only its start
  // to be inside a bound buffer.
  [[nodiscard]] bool covers(std::uint32_t bufx, std::uint32_t offset, std::uint64_t length) const {
    auto const size = std::uint64_t{1} << bufsize_;
    if (offset >= size || find(bufx) == nullptr) return false;
    return offset + length <= size || covers_on(bufx, offset + length);
  }

 private:
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t at) const {
    return at & ((std::uint64_t{1} << bufsize_) - 1);
  }
  // Beyond the buffer that holds `at`: whole buffers of the same run, until `length` bytes are
  // reached; whether those up to `end`, counted from the beginning of `bufx`, are all bound.
  [[nodiscard]] std::uint64_t run_on(std::uint64_t at, std::uint64_t length) const;
  [[nodiscard]] bool covers_on(std::uint32_t bufx, std::uint64_t end) const;

  std::uint32_t base_ = 0, count_ = 0;
  unsigned bufsize_ = 14;
  std::vector<Entry> entries_;  // as many as the highest bound entry needs
};

}  // namespace stp
