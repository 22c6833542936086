// SPDX-License-Identifier: BSD-3-Clause
// What accompanies a request or a reply in addition to its fixed part (messages.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libst/service/budget.h"
#include "libst/service/memory_guard.h"
#include "libst/service/shared_memory.h"
#include "stp/types.h"

namespace stp::service {

struct Attachments {
  // kMap: the pieces of memory in this process, and an object that keeps them mapped (may be null
  // if they are the user's own memory). The Service releases it when the Node no longer uses them.
  std::vector<MutableBytes> pieces;
  std::shared_ptr<void> keep;
  // What claim_region() reserved for the region, and the bytes that stpd maps: all of the segments.
  Reservation place;
  std::uint64_t mapped_bytes = 0;
  // Reply of kConnect, kAccept: the channel. Reply of kHello: the client page.
  std::shared_ptr<SharedMemory> memory;
};

// What a region takes from its user's budgets. Reserved before the region is made.
struct RegionClaim {
  Reservation place, bytes, mappings, files;
  Account payer;               // of the files that keep its pages from being moved (page_pins.h)
  std::shared_ptr<Torn> torn;  // set when the owner takes away memory in use
};

}  // namespace stp::service
