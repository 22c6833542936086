// SPDX-License-Identifier: BSD-3-Clause
// Tells CLI11 about the options of stpd. The command line has those of the daemon and of one link,
// a section of the file only those of its link.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/stpd/options.h"

namespace stp::stpd {

void add_link_options(CLI::App& app, LinkOptions& out);
void add_daemon_options(CLI::App& app, Options& out);

// Returns whether a link can have this name.
bool is_plain(const std::string& name);

// Completes `links`, and checks what concerns several options: missing links, duplicate names and
// sockets. Returns false if it has added errors.
bool complete(Options& options, std::vector<std::string>& errors);

}  // namespace stp::stpd
