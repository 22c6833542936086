// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "dpdk_port/link.h"
#include "libst/service/messages.h"

namespace stp::stpctl {
namespace {

constexpr int kUsageError = 2;
constexpr double kLongest = 1e9;  // seconds: fits into nanoseconds of 64 bits

std::string link_of_environment() {
  auto const* const text = std::getenv("STP_LINK");
  return text == nullptr ? "" : text;
}

// The daemon that libst would use.
std::string usual_socket() {
  port::LinkConfig link;
  std::string ignored;
  bool const names_daemon = port::parse_link(link_of_environment(), link, ignored) &&
                            link.kind == port::LinkKind::kStpd && !link.target.empty();
  return names_daemon ? link.target : service::kDefaultSocket;
}

// What was not said: the daemon, and the link to ping on, which need not be a daemon's.
void complete(Options& options) {
  bool const any = options.sockets.empty();
  if (any) options.sockets.push_back(usual_socket());
  if (any && options.link.empty()) options.link = link_of_environment();
  if (options.link.empty()) options.link = "stpd:" + options.sockets.front();
}

void add_lists(CLI::App& app, Options& options, const std::function<void(CLI::App*, Command)>& is) {
  is(app.add_subcommand("links", "The link of each daemon: device, addresses, who uses it"),
     Command::kLinks);
  is(app.add_subcommand("connections", "Connections: whose, with whom, state, bytes both ways"),
     Command::kConnections);
  is(app.add_subcommand("regions", "Memory that programs have mapped"), Command::kRegions);
  auto* const stats = app.add_subcommand("stats", "Counters by name; docs: \"Counters\"");
  stats->add_flag("--all", options.all, "Those that are 0, too");
  stats->add_flag("--prometheus", options.prometheus, "Prometheus text exposition format");
  is(stats, Command::kStats);
}

void add_top(CLI::App& app, Options& options, const std::function<void(CLI::App*, Command)>& is) {
  auto* const top = app.add_subcommand("top", "Live rates of links and of their connections");
  top->add_option("--interval", options.interval, "Seconds between two looks")
      ->check(CLI::Range(0.05, kLongest))
      ->capture_default_str();
  top->add_option("--count", options.count, "End after so many; 0: until Ctrl-C")
      ->capture_default_str();
  is(top, Command::kTop);
}

void add_trace(CLI::App& app, Options& options, const std::function<void(CLI::App*, Command)>& is) {
  auto* const trace = app.add_subcommand(
      "trace", "Capture frames inside the daemon, as pcapng, until Ctrl-C or a bound is reached");
  trace->add_option("--out", options.out, "File to write; it is made or emptied");
  trace->add_option("--for", options.seconds, "End after so many seconds")
      ->check(CLI::Range(0.0, kLongest));
  trace->add_option("--frames", options.frames, "End after so many frames");
  trace->add_flag("--all", options.everything, "Other frames than STP and ARP, too");
  trace->fallthrough();
  is(trace, Command::kTrace);
  // After their parent: the later one tells which command it is.
  auto const action = [&](const char* name, const char* text, Command command) {
    auto* const sub = trace->add_subcommand(name, text);
    sub->fallthrough();
    sub->final_callback([&options, command] { options.command = command; });
  };
  trace->require_subcommand(0, 1);
  action("start", "Begin one that goes on after stpctl has ended", Command::kTraceStart);
  action("stop", "End the one that runs", Command::kTraceStop);
  action("status", "What has been captured so far", Command::kTraceStatus);
}

void add_ping(CLI::App& app, Options& options, const std::function<void(CLI::App*, Command)>& is) {
  auto* const ping = app.add_subcommand(
      "ping",
      "Connect to HOST:PORT, where any program listens, and measure round trips of Request_State, "
      "which the peer's Node answers without that program");
  ping->add_option("peer", options.peer, "HOST:PORT, or with --serve the :PORT to listen on")
      ->required();
  ping->add_flag("--serve", options.serve, "Be the one that listens, until Ctrl-C");
  ping->add_option("--count", options.count, "End after so many; 0: until Ctrl-C")
      ->capture_default_str();
  ping->add_option("--interval", options.interval, "Seconds between two; 0: without a pause")
      ->check(CLI::Range(0.0, kLongest))
      ->capture_default_str();
  ping->add_option("--timeout", options.timeout, "Seconds until one counts as lost")
      ->check(CLI::Range(0.001, kLongest))
      ->capture_default_str();
  ping->add_option("--link", options.link, "Any link, as for STP_LINK; default: the daemon's");
  is(ping, Command::kPing);
}

// CLI11 names the word, but not what would be right.
std::string unknown_command(const CLI::App& app) {
  auto const words = app.remaining();
  if (words.empty()) return "";
  std::string text = "there is no command '" + words.front() + "'; there are";
  for (auto const* const sub : app.get_subcommands({})) text += ' ' + sub->get_name();
  return text;
}

// What CLI11 cannot see. "": nothing is wrong.
std::string check(const Options& options) {
  bool const traces = options.command == Command::kTrace || options.command == Command::kTraceStart;
  if (traces && options.out.empty()) return "trace needs --out FILE";
  bool const one = options.command >= Command::kTrace;
  if (one && options.sockets.size() != 1) return "this command is for one daemon: one --socket";
  if (options.prometheus && options.json) return "--json or --prometheus, not both";
  return "";
}

int usage_error(const std::string& text) {
  std::cerr << "stpctl: " << text << "\nRun with --help for more information.\n";
  return kUsageError;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  CLI::App app("Shows what the daemons of the Scheduled Transfer Protocol do.", "stpctl");
  app.set_version_flag("--version", "stpctl " STP_VERSION);
  app.add_option("--socket", options.sockets,
                 "Socket of the daemon; may be given several times. Default: that of STP_LINK=stpd:"
                 "PATH, else " +
                     std::string(service::kDefaultSocket))
      ->allow_extra_args(false);
  app.add_flag("--json", options.json, "JSON instead of text");
  app.footer(
      "Exit status: 0; 1 when the command could not do its work; 2 for a wrong command line.");
  auto const is = [&options](CLI::App* sub, Command command) {
    sub->fallthrough();
    sub->final_callback([&options, command] { options.command = command; });
  };
  auto const is_parent = [&options](CLI::App* sub, Command command) {
    sub->fallthrough();
    sub->parse_complete_callback([&options, command] { options.command = command; });
  };
  add_lists(app, options, is);
  add_top(app, options, is);
  add_trace(app, options, is_parent);
  add_ping(app, options, is);
  app.require_subcommand(0, 1);
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : kUsageError;
    return std::nullopt;
  }
  auto wrong = unknown_command(app);
  if (wrong.empty() && app.get_subcommands().empty()) wrong = "a command is missing";
  complete(options);
  if (wrong.empty()) wrong = check(options);
  if (wrong.empty()) return options;
  exit_status = usage_error(wrong);
  return std::nullopt;
}

}  // namespace stp::stpctl
