// SPDX-License-Identifier: BSD-3-Clause
// The memory map of this process, as the kernel reports it. libst checks it before it touches
// memory that a user names, so that a bad pointer causes an error and not a crash. Thread-safe,
// except keep_maps_open().
#pragma once

#include <sys/types.h>

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

// A mapped area as the kernel reports it by one system call, without its name.
struct AreaAt {
  std::uintptr_t begin = 0, end = 0;
  bool readable = false, writable = false, shared = false;
  std::uint64_t offset = 0;  // offset of `begin` in the file
  dev_t device = 0;
  std::uint64_t inode = 0;
};

// Appends to `out` the areas that cover `memory`, cut to it. Returns 0; -EFAULT: part of the memory
// is not mapped; or -EOPNOTSUPP: /proc/self/maps cannot be read.
int areas_of(Bytes memory, std::vector<MappedArea>& out);
// Sets `out` to all areas of the process for which `wanted` returns true. False: /proc/self/maps
// cannot be read.
bool areas_where(const std::function<bool(const MappedArea&)>& wanted,
                 std::vector<MappedArea>& out);
// Keeps /proc/self/maps open, so that areas_where works even if no descriptor is free, and for
// areas_at(). Call it once.
void keep_maps_open();
// The area at `address`. False: see errno; ENOENT: nothing is mapped there. Allocates no memory.
bool area_at(std::uintptr_t address, AreaAt& out);
// The areas that cover `memory`, in order, not cut to it. False: part of it is not mapped, it takes
// more than kMostAreas, or the kernel cannot tell (before Linux 6.11).
bool areas_at(Bytes memory, std::vector<AreaAt>& out);
inline constexpr std::size_t kMostAreas = 64;
// Checks that `memory` can be read, and if `write` also written. Returns 0 or an error as
// areas_of().
int check_access(Bytes memory, bool write);

}  // namespace stp::client
