// SPDX-License-Identifier: BSD-3-Clause
// The memory map of this process, as the system reports it. libst checks it before it touches
// memory that a user names, so that a bad pointer causes an error and not a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stp/types.h"

namespace stp::client {

struct MappedArea {
  std::uintptr_t begin = 0, end = 0;
  bool readable = false, writable = false, executable = false;
  bool shared = false;
  std::uint64_t offset = 0;  // offset of `begin` in the file
  std::uint64_t inode = 0;
  std::string name;
};

// Returns the areas that cover `memory`, cut to it. Returns 0, or -EFAULT if part of it is not
// mapped.
int areas_of(Bytes memory, std::vector<MappedArea>& out);
// Returns all areas of the process for which `wanted` returns true. False: the system gives no
// information.
bool areas_where(const std::function<bool(const MappedArea&)>& wanted,
                 std::vector<MappedArea>& out);
// After this call areas_where needs no new descriptor, so it works when none is free.
void keep_maps_open();
// Checks that `memory` can be read, and if `write` also written. Returns 0 or -EFAULT.
int check_access(Bytes memory, bool write);

}  // namespace stp::client
