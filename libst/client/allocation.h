// SPDX-License-Identifier: BSD-3-Clause
// Memory that suits a link: what st_malloc gives.
#pragma once

#include <cstddef>

#include "stp/types.h"

namespace stp::client {

inline constexpr int kAnyNode = -1;

struct MemoryRequest {
  std::size_t size = 0;
  std::size_t alignment = 0;  // a power of two
  int node = kAnyNode;
  bool lent = false;  // to stpd: such memory that st_map has no pages to replace
};

// Zeroed, whole pages, huge ones where the system has them to give. 0 or a negative errno.
int allocate(const MemoryRequest& wanted, void*& out);
// -EINVAL: not what allocate gave.
int release(void* memory);

struct MemoryFacts {
  std::size_t size = 0;  // usable
  std::size_t huge = 0;  // bytes of it that lie on huge pages at this moment
  int node = kAnyNode;   // of its first page; kAnyNode: the system does not tell
};
int describe_memory(const void* memory, MemoryFacts& out);

}  // namespace stp::client
