// SPDX-License-Identifier: BSD-3-Clause
// uDAPL 2.0, as the sources of front/ see it.
#pragma once

#include <dat2/udat.h>
// The registry's header wants udat.h before it.
#include <dat2/dat_registry.h>

namespace stp::udapl::front {

inline constexpr auto kMultipath = DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;

inline DAT_VADDR address_in(const DAT_RMR_TRIPLET& remote) {
  return remote.virtual_address;
}

}  // namespace stp::udapl::front
