// SPDX-License-Identifier: BSD-3-Clause
// uDAPL 1.2, as the sources of front/ see it.
#pragma once

#include <dat/dat_registry.h>

namespace stp::udapl::front {

inline constexpr auto kMultipath = DAT_MULTIPATH_FLAG;

inline DAT_VADDR address_in(const DAT_RMR_TRIPLET& remote) {
  return remote.target_address;
}

}  // namespace stp::udapl::front
