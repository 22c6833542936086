// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_remains.h"

namespace stp {

std::size_t InboundRemains::dismantle(std::size_t most) {
  std::size_t done = 0;
  while (done < most && !apart_.empty()) {
    auto& transfer = apart_.back().mapped();
    done += transfer.dismantle(most - done) + 1;
    if (transfer.blocks.empty() && transfer.window.empty()) apart_.pop_back();
  }
  while (done < most && !together_.empty()) {
    auto& transfers = together_.back();
    if (transfers.empty()) {
      together_.pop_back();
      continue;
    }
    const auto first = transfers.begin();
    done += first->second.dismantle(most - done) + 1;
    if (first->second.blocks.empty() && first->second.window.empty()) transfers.erase(first);
  }
  return done;
}

}  // namespace stp
