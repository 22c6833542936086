// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace stp::service {

// In the order of their weight: who asks for one hears those before it, too.
enum class LogLevel { kError, kWarning, kInfo, kDebug };

}  // namespace stp::service
