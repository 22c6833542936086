// SPDX-License-Identifier: BSD-3-Clause
// What is left of endpoints, regions and connections that have ended: records that removal.h
// removes one at a time. Whoever ends such an object adds it here.
#pragma once

#include <deque>

#include "libst/service/identity.h"
#include "stp/node/node.h"

namespace stp::service {

// Exactly one of the three objects is named.
struct Leftover {
  ClientId client = 0;
  EndpointId endpoint = kNoneId;  // has ended: its regions can no longer be asked about
  RegionId region = kNoneId;      // has gone: so have its Mx
  VcId vc = kNoneId;              // has gone: so have its Mx
};

using Leftovers = std::deque<Leftover>;

}  // namespace stp::service
