// SPDX-License-Identifier: BSD-3-Clause
// A Protection Zone: groups memory and EPs.
#pragma once

#include "libst/udapl/core/object.h"
#include "libst/udapl/core/result.h"

namespace stp::udapl {

class Pz : public Object {
 public:
  explicit Pz(Ia& ia) : Object(Kind::kPz, ia) {}
  static Result create(Ia& ia, std::shared_ptr<Pz>& out);
  Result free();
  // The group that the managed API has for the EPs of this zone.
  [[nodiscard]] std::uint64_t group() const { return reinterpret_cast<std::uintptr_t>(this); }
};

}  // namespace stp::udapl
