// SPDX-License-Identifier: BSD-3-Clause
// The configuration file: name = value, as TOML has it, the names those of the command line without
// their dashes. What stands above the first section is about the daemon, or about its only link;
// [link.NAME] begins a link with that name.
#pragma once

#include <string>
#include <vector>

#include "tools/stpd/options.h"

namespace stp::stpd {

// Errors name the line and the remedy: all of them, since nobody likes to learn one at a time.
bool read_config(const std::string& path, Options& out, std::vector<std::string>& errors);

}  // namespace stp::stpd
