// SPDX-License-Identifier: BSD-3-Clause
// Whole pages of the library's own that replace memory of the program that cannot be lent: memory
// in a shared mapping, executable memory, or the stack.
#pragma once

#include <cstddef>
#include <memory>

#include "stp/types.h"

namespace stp::managed {

class StandIn {
 public:
  static constexpr std::size_t kMost = 64 * 1024;  // copying more does not pay

  StandIn() = default;
  // Allocates as many bytes as `pages`, whole pages of the program. Empty if there is no memory.
  explicit StandIn(MutableBytes pages);

  [[nodiscard]] explicit operator bool() const { return bytes_ != nullptr; }
  [[nodiscard]] MutableBytes pages() const { return {bytes_.get(), bytes_.get_deleter().size}; }
  // The byte that corresponds to `ptr`.
  [[nodiscard]] std::byte* at(const void* ptr) const {
    return bytes_.get() + (static_cast<const std::byte*>(ptr) - original_);
  }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Unmap> bytes_;
  const std::byte* original_ = nullptr;
};

}  // namespace stp::managed
