// SPDX-License-Identifier: BSD-3-Clause
// Allocates memory that suits a link, for st_malloc.
#pragma once

#include <cstddef>

#include "stp/types.h"

namespace stp::client {

inline constexpr int kAnyNode = -1;

struct MemoryRequest {
  std::size_t size = 0;
  std::size_t alignment = 0;  // a power of two
  int node = kAnyNode;
  bool lent = false;  // to stpd: st_map then need not replace its pages
};

// Allocates zeroed whole pages, huge ones if the kernel has any free. release() frees them. Returns
// 0 or a negative errno.
int allocate(const MemoryRequest& wanted, void*& out);
// -EINVAL: `memory` does not come from allocate().
int release(void* memory);

struct MemoryFacts {
  std::size_t size = 0;  // usable
  std::size_t huge = 0;  // bytes of it on huge pages at present
  int node = kAnyNode;   // of its first page; kAnyNode: unknown
};
int describe_memory(const void* memory, MemoryFacts& out);

}  // namespace stp::client
