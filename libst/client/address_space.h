// SPDX-License-Identifier: BSD-3-Clause
// What this process has mapped where: asked of the system before memory that a user names is
// touched, so that a bad pointer is an error and not a crash.
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
  std::uint64_t offset = 0;  // of `begin` in the file
  std::uint64_t inode = 0;
  std::string name;
};

// The areas that `memory` lies in, cut to it, without a hole between: 0, or -EFAULT where nothing
// is mapped.
int areas_of(Bytes memory, std::vector<MappedArea>& out);
// All areas of the process that `wanted` wants. False: the system does not tell, nothing is known.
bool areas_where(const std::function<bool(const MappedArea&)>& wanted,
                 std::vector<MappedArea>& out);
// From here on areas_where needs no new descriptor, of which there may be none left.
void keep_maps_open();
// Whether `memory` can be read, and written if asked: 0 or -EFAULT.
int check_access(Bytes memory, bool write);

}  // namespace stp::client
