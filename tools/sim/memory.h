// SPDX-License-Identifier: BSD-3-Clause
// Memory in which every byte can be checked: a pattern identifies the Transfer of a byte, and a
// canary fills the bytes that must not be written.
#pragma once

#include <cstdint>

#include "stp/types.h"

namespace stp::sim {

// Zeroed memory, aligned as user memory must be.
class Memory {
 public:
  static constexpr std::size_t kAlignment = 4096;
  explicit Memory(std::size_t size);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] MutableBytes all() const { return {bytes_, size_}; }
  [[nodiscard]] std::byte* data() const { return bytes_; }

 private:
  std::size_t size_;
  std::byte* bytes_;
};

// The bytes of a Transfer, from number `from`.
void fill_pattern(MutableBytes memory, std::uint64_t transfer, std::uint64_t from = 0);
bool has_pattern(Bytes memory, std::uint64_t transfer, std::uint64_t from = 0);

void fill_canary(MutableBytes memory);
bool has_canary(Bytes memory);

}  // namespace stp::sim
