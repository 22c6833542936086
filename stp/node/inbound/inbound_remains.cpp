// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_remains.h"

namespace stp {

std::size_t InboundRemains::dismantle(std::size_t most) {
  std::size_t done = 0;
  while (done < most && !apart_.empty()) {
    done += apart_.back().mapped().dismantle(most - done);
    if (done == most) return done;
    apart_.pop_back();
    ++done;
  }
  while (done < most && !together_.empty()) {
    auto& transfers = together_.back();
    if (transfers.empty()) {
      together_.pop_back();
      continue;
    }
    const auto first = transfers.begin();
    done += first->second.dismantle(most - done);
    if (done == most) return done;
    transfers.erase(first);
    ++done;
  }
  return done;
}

}  // namespace stp
