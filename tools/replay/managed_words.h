// SPDX-License-Identifier: BSD-3-Clause
// The words of the managed layer in option payloads and messages (docs/managed-wire.md).
#pragma once

#include <cstdint>

namespace stp::replay::managed {

// protocol: 9.30, 9.31, 9.34
inline constexpr std::uint32_t kHelloMagic = 0x53544d48, kNoticeMark = 0x53544d4e,
                               kEndMark = 0x53544d45;
inline constexpr std::uint32_t kHelloHead = 12, kEagerHead = 16;
enum HelloKind : std::uint32_t { kRequest = 1, kAccept = 2, kReject = 3 };
enum EndReason : std::uint32_t { kBrokenOff = 1, kNoReceive = 2 };

// The name of the region for short messages.
// protocol: 9.29
inline constexpr std::uint32_t kRingName = 1;

}  // namespace stp::replay::managed
