// SPDX-License-Identifier: BSD-3-Clause
// The configuration file: TOML lines name = value. The names are those of the command line without
// their dashes. Lines above the first section apply to the daemon, or to its only link. [link.NAME]
// begins a link with that name.
#pragma once

#include <string>
#include <vector>

#include "tools/stpd/options.h"

namespace stp::stpd {

// Adds the options of the file to `out`, and all its errors to `errors`, each with its line and
// remedy. Returns false if there are errors.
bool read_config(const std::string& path, Options& out, std::vector<std::string>& errors);

}  // namespace stp::stpd
