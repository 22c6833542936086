// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/stand_in.h"

#include <sys/mman.h>

namespace stp::managed {

StandIn::StandIn(MutableBytes pages) {
  auto* const mapped =
      ::mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return;
  bytes_ = {static_cast<std::byte*>(mapped), Unmap{pages.size()}};
  original_ = pages.data();
}

void StandIn::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, size);
}

}  // namespace stp::managed
