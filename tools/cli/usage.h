// SPDX-License-Identifier: BSD-3-Clause
// How programs report a wrong command line: the program, what is wrong, where help is.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

namespace stp::cli {

inline int usage_error(const std::string& program, const std::string& what, int status) {
  std::fprintf(stderr, "%s: %s\nRun with --help for more information.\n", program.c_str(),
               what.c_str());
  return status;
}

// The program with the subcommands that were given, as it is written.
inline std::string command_of(const CLI::App& app) {
  std::string words = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    words += ' ' + at->get_name();
  }
  return words;
}

// An option that there is not: it explains what else seems to be wrong. "": none was given.
inline std::string wrong_option(const CLI::App& app) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    return "there is no option " + word + ": '" + command_of(app) +
           " --help' lists those there are";
  }
  return {};
}

// Reports what parse() has thrown. Returns 0 if it was a question for help or the version, else
// `status`.
inline int parse_failure(const CLI::App& app, const CLI::ParseError& error, int status) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const std::string wrong = wrong_option(app);
  return usage_error(app.get_name(), wrong.empty() ? error.what() : wrong, status);
}

}  // namespace stp::cli
