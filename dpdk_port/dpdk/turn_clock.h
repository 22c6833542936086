// SPDX-License-Identifier: BSD-3-Clause
// Time for those who look at it several times a microsecond. A turn of an idle link takes a tenth
// of one, and a fifth of that would be the system's clock: within kOldest it is not asked again,
// which the processor's own counter tells more cheaply.
#pragma once

#include "stp/types.h"

namespace stp::port {

class TurnClock {
 public:
  // How old at most what it says may be.
  static constexpr Time kOldest = kMicrosecond;

  TurnClock();
  // As port::now(), up to kOldest before it; never goes back. One thread at a time.
  Time now();

 private:
  const std::uint64_t oldest_;  // in ticks of the counter
  std::uint64_t asked_ = 0;     // its value then
  Time time_ = 0;
};

}  // namespace stp::port
