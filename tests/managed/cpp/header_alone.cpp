// SPDX-License-Identifier: BSD-3-Clause
// <stp/managed.hpp> needs nothing but itself, and no more than C++17.
#include <stp/managed.hpp>

static_assert(__cplusplus < 202002L);
