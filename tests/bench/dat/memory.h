// SPDX-License-Identifier: BSD-3-Clause
// Memory that is aligned to a page, so that both APIs tile it in the same way.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "tests/bench/dat/plan.h"

namespace stp::bench {

class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size)
      : bytes_(static_cast<std::byte*>(std::aligned_alloc(kPage, size))) {
    if (!bytes_) throw std::bad_alloc();
    std::memset(bytes_.get(), 1, size);
  }
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace stp::bench
