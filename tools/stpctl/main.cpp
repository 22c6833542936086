// SPDX-License-Identifier: BSD-3-Clause
// stpctl: shows what stpd does, makes traces of it, and measures round trips. Its command line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk_port/link/link.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "libst/os/standard_streams.h"
#include "stp/base/caught.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/stpctl/commands.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {
namespace {

constexpr int kUsageError = 2;

std::string link_of_environment() {
  const auto* const text = std::getenv("STP_LINK");
  return text == nullptr ? "" : text;
}

// Returns the sockets of all links of the daemon, which are in one directory. If there are none,
// returns the default socket, so that the command reports that it is missing.
std::vector<std::string> all_sockets() {
  std::vector<std::string> all;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(ipc::kSocketDirectory, ignored))
    if (file.path().extension() == ".sock") all.push_back(file.path());
  std::sort(all.begin(), all.end());
  if (all.empty()) all.push_back(ipc::kDefaultSocket);
  return all;
}

// Returns the sockets to use if none is named: that of STP_LINK; else, for a command about `one`
// link, the default one if it exists; else all there are.
std::vector<std::string> usual_sockets(bool one) {
  port::LinkConfig link;
  std::string ignored;
  if (port::parse_link(link_of_environment(), link, ignored) && link.kind == port::LinkKind::kStpd)
    return {ipc::socket_of(link.target)};
  const auto all = all_sockets();
  const bool there = std::find(all.begin(), all.end(), ipc::kDefaultSocket) != all.end();
  return one && there ? std::vector<std::string>{ipc::kDefaultSocket} : all;
}

// Fills in what the command line has not named: sockets, and the link of ping and dat-conf, which
// may be any link. Returns what is wrong with a link that was named; "": nothing.
std::string complete(Options& options, bool for_one_link) {
  std::vector<std::string> once;
  for (const auto& name : options.sockets)
    if (const auto socket = ipc::socket_of(name);
        std::find(once.begin(), once.end(), socket) == once.end())
      once.push_back(socket);
  options.sockets = once;
  const bool any = options.sockets.empty();
  if (any) options.sockets = usual_sockets(for_one_link);
  if (any && options.link.empty()) options.link = link_of_environment();
  if (options.link.empty() && options.run != dat_conf)
    options.link = "stpd:" + options.sockets.front();
  const bool uses_it = options.run != devices && !options.link.empty() &&
                       options.link != "stpd:" + options.sockets.front();
  port::LinkConfig ignored;
  std::string wrong;
  if (uses_it) port::parse_link(options.link, ignored, wrong);
  return wrong;
}

// All there is of a command (commands.h).
struct CommandRow {
  std::string_view name, help, example;
  void (*run)(const Options&);
  void (*add_options)(cli::App&, Options&);
  std::string (*check)(const Options&);  // what is wrong with the options; "": nothing
  bool for_one_link;
};
#define STP_COMMAND(name, help, example, run, add_options, check, for_one_link) \
  {name, help, example, run, add_options, check, for_one_link},
constexpr CommandRow kCommands[] = {STP_COMMANDS(STP_COMMAND)};
#undef STP_COMMAND

using CommandsByName = std::map<std::string_view, cli::App*>;

constexpr char kExitStatus[] =
    "Exit status: 0 for success, 1 if the command failed, 2 for a wrong command line.\n";

// Adds the commands that stand alone, or those of others.
void add_commands(cli::App& app, Options& options, bool of_others, CommandsByName& added) {
  for (const auto& row : kCommands) {
    const auto blank = row.name.find(' ');
    if ((blank != row.name.npos) != of_others) continue;
    auto* const parent = of_others ? added.at(row.name.substr(0, blank)) : &app;
    auto* const sub =
        parent->add_subcommand(std::string(row.name.substr(blank + 1)), std::string(row.help));
    added[row.name] = sub;
    sub->footer("Options of all commands: stpctl --help\n\n" +
                (kExitStatus + ("Example: stpctl " + std::string(row.example))));
    parent->require_subcommand(0, 1);
    sub->fallthrough();
    if (row.add_options != nullptr) row.add_options(*sub, options);
  }
}

// The command of the command line. Without one it is the first.
const CommandRow& chosen(const cli::App& app) {
  const auto words = app.command();  // "stpctl trace start"
  const auto* const row = std::ranges::find_if(kCommands, [&](const CommandRow& each) {
    return words.ends_with(" " + std::string(each.name));
  });
  return row == std::end(kCommands) ? kCommands[0] : *row;
}

// Returns an error that lists the commands, which that of parse() does not; "": the command is
// known.
std::string unknown_command(const cli::App& app) {
  const auto words = app.remaining(true);
  if (words.empty()) return "";
  if (const auto option = app.wrong_option(); !option.empty()) return option;
  if (const auto command = app.wrong_command(); !command.empty()) return command;
  return "'" + words.front() + "' is too much: see '" + app.command() + " --help'";
}

// "trace stop" takes no options of "trace", which CLI11 would read and forget.
std::string foreign_option(const CommandRow& command, const CommandsByName& commands) {
  const auto blank = command.name.find(' ');
  if (blank == command.name.npos) return "";
  const auto option =
      commands.at(command.name.substr(0, blank))->option_not_of(*commands.at(command.name));
  if (option.empty()) return "";
  return "'" + std::string(command.name) + "' has no option " + option;
}

// Checks combinations of options. Returns the error; "": nothing is wrong.
std::string check(const CommandRow& command, const Options& options) {
  if (command.for_one_link && options.sockets.size() != 1)
    return "this command is for one link: name one with --socket";
  return command.check != nullptr ? command.check(options) : "";
}

// nullopt: the program ends with `exit_status`; help or the error has been printed.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  cli::App app("Shows what the daemons of the Scheduled Transfer Protocol do.", "stpctl");
  app.set_version_flag("--version", "stpctl " STP_VERSION);
  app.add_option("--socket", options.sockets,
                 "Socket of the daemon: its path, or the NAME of its link; may be given several "
                 "times")
      ->type_name("PATH|NAME")
      ->default_str("that of STP_LINK, else all in " + std::string(ipc::kSocketDirectory))
      ->allow_extra_args(false);
  app.add_flag("--json", options.json, "JSON instead of text");
  app.footer(std::string(kExitStatus) +
             "Examples: stpctl connections\n"
             "          stpctl trace --out slow.pcapng --for 10\n"
             "          stpctl ping --count 100 --interval 0 10.9.0.2:3000");
  CommandsByName commands;
  for (const bool of_others : {false, true}) add_commands(app, options, of_others, commands);
  app.allow_extras();
  if (const auto status = app.parse_or_report(argc, argv, kUsageError)) {
    exit_status = *status;
    return std::nullopt;
  }
  auto wrong = unknown_command(app);
  if (wrong.empty()) wrong = app.missing_command();
  const auto& command = chosen(app);
  if (wrong.empty()) wrong = foreign_option(command, commands);
  options.run = command.run;
  if (wrong.empty() && (options.run == devices || options.list) && !options.sockets.empty())
    wrong = std::string("--socket is for what a daemon has, and ") +
            (options.list ? "stats --list" : "devices") + " asks none; leave it out";
  const auto wrong_link = complete(options, command.for_one_link);
  if (wrong.empty()) wrong = check(command, options);
  if (wrong.empty()) wrong = wrong_link;
  if (wrong.empty()) return options;
  exit_status = cli::usage_error("stpctl", wrong, kUsageError);
  return std::nullopt;
}

}  // namespace
}  // namespace stp::stpctl

int main(int argc, char** argv) {
  stp::os::hold_standard_streams();
  try {
    int exit_status = EXIT_SUCCESS;
    const auto options = stp::stpctl::parse_options(argc, argv, exit_status);
    if (!options) return stp::os::status_with_output("stpctl", exit_status, EXIT_FAILURE);
    options->run(*options);
    return stp::os::status_with_output("stpctl", EXIT_SUCCESS, EXIT_FAILURE);
  } catch (const stp::stpctl::WrongUsage& failure) {
    std::fflush(stdout);
    return stp::cli::usage_error("stpctl", failure.what(), stp::cli::kWrongUsage);
  } catch (const stp::stpctl::Failure& failure) {
    std::fflush(stdout);
    for (const auto& each : failure.what_each) stp::cli::say("stpctl", each);
    return EXIT_FAILURE;
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    stp::cli::say("stpctl", stp::what_of(failure));
    return EXIT_FAILURE;
  }
}
