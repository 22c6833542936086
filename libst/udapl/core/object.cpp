// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/object.h"

#include "libst/udapl/core/ia.h"

namespace stp::udapl {

Object::Object(Kind kind, Ia& ia)
    : ia_(ia), keep_(kind == Kind::kIa ? nullptr : ia.shared_from_this()), kind_(kind) {}

}  // namespace stp::udapl
