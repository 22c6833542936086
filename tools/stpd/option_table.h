// SPDX-License-Identifier: BSD-3-Clause
// The options of stpd, as CLI11 knows them: one table for the command line, one for what stands in
// a section of the file.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/stpd/options.h"

namespace stp::stpd {

void add_link_options(CLI::App& app, LinkOptions& out);
void add_daemon_options(CLI::App& app, Options& out);

// Whether a link can have this name.
bool is_plain(const std::string& name);

// Checks that concern several options: duplicate names and sockets, missing links. Completes
// `links`.
bool complete(Options& options, std::vector<std::string>& errors);

}  // namespace stp::stpd
