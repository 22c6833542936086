// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace stp::service {

// By severity: a log at one level also shows all levels before it.
enum class LogLevel { kError, kWarning, kInfo, kDebug };

}  // namespace stp::service
