// SPDX-License-Identifier: BSD-3-Clause
#include "libst/python/staging.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace stp::python {

Staging::~Staging() {
  for (const auto& chunk : chunks_) ::munmap(chunk.at, chunk.size);
}

Place Staging::take(stm_domain_t domain, std::size_t size) {
  const auto log2 =
      std::max(kLeast, static_cast<unsigned>(std::bit_width(std::max<std::size_t>(size, 1) - 1)));
  auto& free = free_[log2];
  if (free.empty()) {
    // Short pieces come many at a time: a registration costs more than they do.
    const auto whole = std::size_t{1} << (log2 < 14 ? 18U : std::max(log2, kPiecesOfChunk));
    auto* const at = static_cast<char*>(
        ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at == MAP_FAILED) throw Failed{-ENOMEM, "no memory for messages"};
    stm_memory_t memory = nullptr;
    try {
      checked_at_link(
          outside([&] { return stm_memory_register(domain, at, whole, STM_LOCAL_WRITE, &memory); }),
          "registering memory for messages");
    } catch (...) {
      ::munmap(at, whole);
      throw;
    }
    chunks_.push_back({at, whole});
    for (auto offset = whole; offset > 0; offset -= std::size_t{1} << log2)
      free.push_back({memory, at + offset - (std::size_t{1} << log2), log2});
  }
  const auto place = free.back();
  free.pop_back();
  return place;
}

}  // namespace stp::python
