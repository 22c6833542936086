// SPDX-License-Identifier: BSD-3-Clause
// What programs tell people. The texts quote names that others have chosen: of links, sockets,
// peers, files and users. Here they become harmless (printable.h), so whoever has something to tell
// need not think of it. Nothing in tools/ writes to standard error in another way, but for progress
// on a terminal and stpd's log (tests/style/terminal.sh).
#pragma once

#include <string_view>

namespace stp::cli {

// Writes "PROGRAM: TEXT" to standard error, as one line whatever the text holds.
void say(std::string_view program, std::string_view text);

// Writes the text as one line to standard output. output_trouble() tells if that fails.
void print(std::string_view text);

}  // namespace stp::cli
