// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of a domain for what is copied: short messages, and those that are received as
// bytes. Pages of its own: the interpreter's heap stays as it is.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "libst/python/interpreter.h"

namespace stp::python {

// A piece of a power of two.
struct Place {
  stm_memory_t memory = nullptr;
  char* at = nullptr;
  unsigned log2 = 0;
};

class Staging {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 30;  // of one piece

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();  // after the domain was closed

  Place take(stm_domain_t domain, std::size_t size);
  void give(const Place& place) { free_[place.log2].push_back(place); }

 private:
  static constexpr unsigned kLeast = 8, kPiecesOfChunk = 20, kMostLog2 = 30;
  struct Chunk {
    void* at;
    std::size_t size;
  };

  std::vector<Chunk> chunks_;
  std::array<std::vector<Place>, kMostLog2 + 1> free_;  // by the logarithm of their size
};

}  // namespace stp::python
