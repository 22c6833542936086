// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/departures.h"

#include <utility>

#include "stp/base/work_meter.h"

namespace stp {

void NodeDepartures::start(const PortTable& vcs, Time now) {
  work::count("clocks that begin", left_.size());
  for (const auto id : left_) {
    auto* const vc = vcs.find(id);
    if (vc == nullptr) continue;
    const auto clocks = std::exchange(vc->departing.clocks_, std::uint8_t{0});
    if ((clocks & kHandshakeClock) != 0) vc->handshake.left(now);
    if ((clocks & kAskClock) != 0) vc->questions.left(now);
    if ((clocks & kGrantClock) != 0) vc->recovery.grant_left(now);
  }
  left_.clear();
}

}  // namespace stp
