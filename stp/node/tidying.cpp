// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/tidying.h"

#include <utility>

namespace stp {

void Tidying::later(InboundRemains ended) {
  ended.dismantle(kAtOnce);
  if (!ended.empty()) remains_.push_back(std::move(ended));
}

void Tidying::turn() {
  auto left = kInATurn;
  left -= memory_.tidy(left);
  left -= pacing_.tidy(left);
  while (left > 0 && !remains_.empty()) {
    left -= remains_.front().dismantle(left);
    if (remains_.front().empty()) remains_.pop_front();
  }
  while (left > 0 && !vcs_.empty()) {
    auto& vc = vcs_.pop_front();
    left -= vc.inbound.tidy(left);
    later(vc);
  }
}

}  // namespace stp
