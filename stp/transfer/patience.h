// SPDX-License-Identifier: BSD-3-Clause
// How long the managed layer waits: for the peer's Node to answer; for the peer's user or managed
// layer to act; for progress of a Transfer; and for a user that is said to know of it.
#pragma once

#include "stp/types.h"

namespace stp {

// protocol: 10.11, 10.17
inline constexpr Time kAnswerPatience = 10 * kSecond;
inline constexpr Time kUserPatience = 30 * kSecond;
inline constexpr Time kProgressPatience = 30 * kSecond;
inline constexpr Time kSeenPatience = 24 * 3600 * kSecond;

}  // namespace stp
