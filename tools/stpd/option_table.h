// SPDX-License-Identifier: BSD-3-Clause
// The options of stpd. The command line has those of the daemon and of one link,
// a section of the file only those of its link.
#pragma once

#include "tools/cli/app.h"
#include "tools/stpd/options.h"

namespace stp::stpd {

void add_link_options(cli::App& app, LinkOptions& out);
void add_daemon_options(cli::App& app, Options& out);

// Returns whether a link can have this name.
bool is_plain(const std::string& name);

// Completes `links`, and checks what concerns several options: missing links, duplicate names and
// sockets. Returns false if it has added errors.
bool complete(Options& options, std::vector<std::string>& errors);

}  // namespace stp::stpd
