// SPDX-License-Identifier: BSD-3-Clause
// Flags of DAT calls and attributes. The numbers are those of both interfaces.
#pragma once

namespace stp::udapl {

using Flags = unsigned;

inline constexpr Flags kSuppress = 0x01, kSolicitedWait = 0x02, kUnsignalled = 0x04,
                       kBarrierFence = 0x08, kEvdThreshold = 0x10;

inline constexpr Flags kStreamSoftware = 0x001, kStreamCr = 0x010, kStreamDto = 0x020,
                       kStreamConnection = 0x040, kStreamBind = 0x080, kStreamAsync = 0x100;

inline constexpr Flags kLocalRead = 0x01, kRemoteRead = 0x02, kLocalWrite = 0x10,
                       kRemoteWrite = 0x20, kAllPrivileges = 0x33;

}  // namespace stp::udapl
