// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/pz.h"

#include "libst/udapl/core/ia.h"

namespace stp::udapl {

Result Pz::create(Ia& ia, std::shared_ptr<Pz>& out) {
  const Lock lock(ia.mutex());
  out = ia.adopt(std::make_shared<Pz>(ia));
  return Result::kSuccess;
}

Result Pz::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (used()) return Result::kInvalidState;
  ia().forget(*this);
  return Result::kSuccess;
}

}  // namespace stp::udapl
