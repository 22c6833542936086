// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/memory.h"

#include <cstring>
#include <new>

namespace stp::sim {
namespace {

constexpr std::byte kCanary{0xc9};

// The value differs between neighbouring bytes, and between the same byte of neighbouring STUs,
// Blocks and Transfers.
struct Pattern {
  explicit Pattern(std::uint64_t transfer) : key((transfer + 1) * 0x9e3779b97f4a7c15 >> 40) {}
  std::byte operator()(std::uint64_t at) const {
    return static_cast<std::byte>(key + at * 167 + (at >> 8) * 59 + (at >> 16) * 31 + (at >> 26));
  }
  std::uint64_t key;
};

}  // namespace

Memory::Memory(std::size_t size)
    : size_(size),
      bytes_(static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}))) {
  std::memset(bytes_, 0, size_);
}

Memory::~Memory() {
  ::operator delete (bytes_, std::align_val_t{kAlignment});
}

void fill_pattern(MutableBytes memory, std::uint64_t transfer, std::uint64_t from) {
  const Pattern pattern(transfer);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern(from + i);
}

bool has_pattern(Bytes memory, std::uint64_t transfer, std::uint64_t from) {
  const Pattern pattern(transfer);
  bool right = true;
  for (std::size_t i = 0; i < memory.size(); ++i) right &= memory[i] == pattern(from + i);
  return right;
}

void fill_canary(MutableBytes memory) {
  if (!memory.empty()) std::memset(memory.data(), static_cast<int>(kCanary), memory.size());
}

bool has_canary(Bytes memory) {
  return memory.empty() || (memory[0] == kCanary &&
                            std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
}

}  // namespace stp::sim
