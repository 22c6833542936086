// SPDX-License-Identifier: BSD-3-Clause
// The options of stpd, and how their values are parsed. The command line has those of the daemon
// and of one link, a section of the file only those of its link.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/app.h"
#include "tools/stpd/options.h"

namespace stp::stpd {

// Parses the values of options. An invalid value throws cli::ValidationError, which names the
// option, its value and the allowed values.
[[noreturn]] void refuse(const std::string& what);

// A whole number up to `most`.
std::uint64_t parse_count(const std::string& option, const std::string& text, std::uint64_t most);
// Bytes: 4096, 512KiB, 64M, "4 GiB"; units are powers of 1024.
std::uint64_t parse_size(const std::string& option, const std::string& text);
// "2-3,6" of --cpus: CPUs that this process may run on.
std::vector<unsigned> parse_cpus(const std::string& text);
// Three octal digits, of --socket-mode.
mode_t parse_mode(const std::string& text);

// The options of stpd. The command line has those of the daemon and of one link,
// a section of the file only those of its link.
void add_link_options(cli::App& app, LinkOptions& out);
void add_daemon_options(cli::App& app, Options& out);

// Returns whether a link can have this name.
bool is_plain(const std::string& name);

// Completes `links`, and checks what concerns several options: missing links, duplicate names and
// sockets. Returns false if it has added errors.
bool complete(Options& options, std::vector<std::string>& errors);

}  // namespace stp::stpd
