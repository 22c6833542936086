// SPDX-License-Identifier: BSD-3-Clause
// The flags that an endpoint's calls without a flags argument have: FI_GETOPSFLAG, FI_SETOPSFLAG.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "libst/libfabric/hints.h"

namespace stp::fi {

struct OpFlags {
  std::uint64_t tx = 0, rx = 0;

  explicit OpFlags(const fi_info& info);
  // FI_GETOPSFLAG or FI_SETOPSFLAG; `argument` as in fi_control. -FI_ENOSYS: another command.
  int control(int command, void* argument, const Offer& offer);
};

}  // namespace stp::fi
