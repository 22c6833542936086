// SPDX-License-Identifier: BSD-3-Clause
// Passes a header to the user of a connection.
#pragma once

#include "stp/node/wake_ups.h"

namespace stp {

// Puts `header` and the option or append `payload` into the Schedule Header Queue of `vc`, and has
// `wake_ups` tell its user. `length`: of the Block's data. False: no room.
bool deliver(Vc& vc, WakeUps& wake_ups, const MacAddr& from, const wire::Header& header,
             Bytes payload, NodeChannel::Place place, std::uint64_t length = 0);

}  // namespace stp
