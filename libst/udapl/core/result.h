// SPDX-License-Identifier: BSD-3-Clause
// The result of a DAT call. The numbers are those of both DAT interfaces, without class and
// subtype.
#pragma once

#include <cstdint>
#include <string>

namespace stp::udapl {

enum class Result : std::uint32_t {
  kSuccess = 0,
  kAbort = 0x010000,
  kConnQualInUse = 0x020000,
  kInsufficientResources = 0x030000,
  kInternalError = 0x040000,
  kInvalidHandle = 0x050000,
  kInvalidParameter = 0x060000,
  kInvalidState = 0x070000,
  kLengthError = 0x080000,
  kModelNotSupported = 0x090000,
  kPrivilegesViolation = 0x0b0000,
  kProtectionViolation = 0x0c0000,
  kQueueEmpty = 0x0d0000,
  kQueueFull = 0x0e0000,
  kTimeoutExpired = 0x0f0000,
  kInvalidAddress = 0x120000,
  kInterruptedCall = 0x130000,
  kConnQualUnavailable = 0x140000,
};

// Converts a negative errno of the managed API.
Result result_of(int error);
// The same for a failure whose cause no result of DAT can tell. Also prints the text of st_strerror
// on stderr, because a DAT consumer cannot ask for it. `what`: what has failed.
Result told_result_of(int error, const std::string& what);

}  // namespace stp::udapl
