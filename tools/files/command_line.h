// SPDX-License-Identifier: BSD-3-Clause
// The command line of stp-send and stp-recv.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/files/failure.h"

namespace stp::files {

inline void add_link_option(cli::App& app, std::string& link) {
  app.add_option("--link", link,
                 std::string("Link to use: ") + cli::kLinksToOthers +
                     ", with options after commas; not loop, which reaches only this program")
      ->type_name("LINK")
      ->default_str("STP_LINK, else the stpd of this host, if it runs");
}

// Parses it. The exit status of a program that has no more to do: it printed its help, or the
// options are wrong.
inline std::optional<int> parse(cli::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const cli::ParseError& error) {
    const auto status = app.report(error, cli::kWrongUsage);
    if (std::cout.flush()) return status;
    const auto text = error_text(errno);
    cli::say(app.get_name(), "cannot write to standard output: " + text);
    return EXIT_FAILURE;
  }
}

}  // namespace stp::files
