// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "dpdk_port/link/link.h"
#include "libst/service/messages.h"
#include "libst/service/socket.h"
#include "tools/cli/app.h"

namespace stp::stpctl {
namespace {

constexpr int kUsageError = 2;
constexpr double kLongest = 1e9;  // seconds: fits into nanoseconds of 64 bits

std::string link_of_environment() {
  const auto* const text = std::getenv("STP_LINK");
  return text == nullptr ? "" : text;
}

// Returns the sockets of all links of the daemon, which are in one directory. If there are none,
// returns the default socket, so that the command reports that it is missing.
std::vector<std::string> all_sockets() {
  std::vector<std::string> all;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(service::kSocketDirectory, ignored))
    if (file.path().extension() == ".sock") all.push_back(file.path());
  std::sort(all.begin(), all.end());
  if (all.empty()) all.push_back(service::kDefaultSocket);
  return all;
}

// Returns the sockets to use if none is named: that of STP_LINK; else, for a command about `one`
// link, the default one if it exists; else all there are.
std::vector<std::string> usual_sockets(bool one) {
  port::LinkConfig link;
  std::string ignored;
  if (port::parse_link(link_of_environment(), link, ignored) && link.kind == port::LinkKind::kStpd)
    return {service::socket_of(link.target)};
  const auto all = all_sockets();
  const bool there = std::find(all.begin(), all.end(), service::kDefaultSocket) != all.end();
  return one && there ? std::vector<std::string>{service::kDefaultSocket} : all;
}

bool is_for_one_link(Command command) {
  return command >= Command::kTrace;
}

// Fills in what the command line has not named: sockets, and the link of ping and dat-conf, which
// may be any link.
void complete(Options& options) {
  std::vector<std::string> once;
  for (const auto& name : options.sockets)
    if (const auto socket = service::socket_of(name);
        std::find(once.begin(), once.end(), socket) == once.end())
      once.push_back(socket);
  options.sockets = once;
  const bool any = options.sockets.empty();
  if (any) options.sockets = usual_sockets(is_for_one_link(options.command));
  if (any && options.link.empty()) options.link = link_of_environment();
  if (options.link.empty() && options.command != Command::kDatConf)
    options.link = "stpd:" + options.sockets.front();
}

void add_lists(cli::App& app, Options& options, const std::function<void(cli::App*, Command)>& is) {
  is(app.add_subcommand("links", "List links: state, addresses, clients, connections, driver"),
     Command::kLinks);
  is(app.add_subcommand("connections", "List connections: owner, peer, state, bytes both ways"),
     Command::kConnections);
  is(app.add_subcommand("regions", "List memory that programs have mapped"), Command::kRegions);
  is(app.add_subcommand("users", "List what each user holds of each budget, and may hold"),
     Command::kUsers);
  auto* const stats = app.add_subcommand("stats", "List counters with their meaning");
  stats->add_flag("--all", options.all, "Also list counters that are 0");
  stats->add_flag("--shards", options.shards, "Also show each shard of a link with queues=");
  stats->add_flag("--prometheus", options.prometheus, "Prometheus text exposition format");
  is(stats, Command::kStats);
  is(app.add_subcommand("devices",
                        "List what could be a link on this machine, with the link string to copy, "
                        "or why it cannot be one; needs no daemon"),
     Command::kDevices);
}

void add_top(cli::App& app, Options& options, const std::function<void(cli::App*, Command)>& is) {
  auto* const top = app.add_subcommand(
      "top", "Show live rates of links, programs and connections; on a terminal, ? lists the keys");
  top->add_option("--interval", options.interval, "Seconds between two samples")
      ->between(0.05, kLongest)
      ->capture_default_str();
  top->add_option("--count", options.count,
                  "Number of samples; 0: until Ctrl-C, or q on a terminal")
      ->capture_default_str();
  is(top, Command::kTop);
}

void add_trace(cli::App& app, Options& options, const std::function<void(cli::App*, Command)>& is) {
  auto* const trace = app.add_subcommand(
      "trace", "Capture frames inside the daemon, as pcapng, until Ctrl-C or a limit is reached");
  trace->add_option("--out", options.out, "File to write; it is created or overwritten");
  trace->add_option("--for", options.seconds, "End after this many seconds")
      ->between(0.0, kLongest);
  trace->add_option("--frames", options.frames, "End after this many frames");
  trace->add_flag("--all", options.everything, "Capture all frames, not only STP and ARP");
  trace
      ->add_option("--snap", options.snap,
                   "Keep only the first BYTES of each frame; stp-replay check needs 80")
      ->between(service::kLeastSnap, service::kMostSnap)
      ->type_name("BYTES");
  trace
      ->add_option("--buffer", options.buffer,
                   "How far the file may be behind, in the daemon's memory, as 256M [64M]")
      ->size()
      ->between(service::kLeastTraceBuffer, service::kMostTraceBuffer)
      ->type_name("SIZE");
  trace->fallthrough();
  is(trace, Command::kTrace);
  // Their callbacks run after that of their parent, and so decide which command it is.
  const auto action = [&](const char* name, const char* text, Command command) {
    auto* const sub = trace->add_subcommand(name, text);
    sub->fallthrough();
    sub->final_callback([&options, command] { options.command = command; });
  };
  trace->require_subcommand(0, 1);
  action("start", "Start a trace that continues after stpctl has ended", Command::kTraceStart);
  action("stop", "Stop the running trace", Command::kTraceStop);
  action("status", "Show what has been captured so far", Command::kTraceStatus);
}

void add_dat_conf(cli::App& app, Options& options,
                  const std::function<void(cli::App*, Command)>& is) {
  auto* const conf = app.add_subcommand(
      "dat-conf",
      "Print lines for /etc/dat.conf, by which DAT programs find the links; needs no daemon");
  conf->add_option("--name", options.name, "Names of the adapters: NAME0, NAME1, ...")
      ->capture_default_str();
  conf->add_option("--provider", options.provider,
                   "Library of the provider [libdaplstp.so.0, where it was installed]")
      ->type_name("FILE");
  conf->add_option("--link", options.link,
                   "Any link, as for STP_LINK; default: those of --socket, else STP_LINK, else the "
                   "daemons'");
  is(conf, Command::kDatConf);
}

void add_ping(cli::App& app, Options& options, const std::function<void(cli::App*, Command)>& is) {
  auto* const ping = app.add_subcommand(
      "ping",
      "Connect to HOST:PORT, where any program may listen, and measure round trips of "
      "Request_State, which the peer's Node answers without that program");
  ping->add_option("peer", options.peer, "HOST:PORT, or with --serve the :PORT to listen on")
      ->required();
  ping->add_flag("--serve", options.serve, "Listen for pings until Ctrl-C");
  ping->add_option("--count", options.count, "Number of pings; 0: until Ctrl-C")
      ->capture_default_str();
  ping->add_option("--interval", options.interval, "Seconds between two pings; 0: no pause")
      ->between(0.0, kLongest)
      ->capture_default_str();
  ping->add_option("--timeout", options.timeout, "Seconds until a ping counts as lost")
      ->between(0.001, kLongest)
      ->capture_default_str();
  ping->add_option("--link", options.link,
                   "Any link, as for STP_LINK; default: that of --socket, else STP_LINK, else the "
                   "daemon's");
  is(ping, Command::kPing);
}

// Returns an error that lists the commands, which that of parse() does not; "": the command is
// known.
std::string unknown_command(const cli::App& app) {
  const auto words = app.remaining();
  if (words.empty()) return "";
  if (const auto option = app.wrong_option(); !option.empty()) return option;
  if (app.has_subcommand())
    return "'" + words.front() + "' is too much: see '" + app.command() + " --help'";
  return app.wrong_command();
}

// Checks combinations of options. Returns the error; "": nothing is wrong.
std::string check(const Options& options) {
  const bool traces = options.command == Command::kTrace || options.command == Command::kTraceStart;
  if (traces && options.out.empty()) return "trace needs --out FILE";
  if (is_for_one_link(options.command) && options.sockets.size() != 1)
    return "this command is for one link: name one with --socket";
  if (options.command == Command::kPing)
    if (auto wrong = cli::reason_against_name(options.peer); !wrong.empty()) return wrong;
  if (options.prometheus && options.json) return "use --json or --prometheus, not both";
  if (options.command == Command::kDatConf && options.json) return "dat-conf has no --json";
  return "";
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  cli::App app("Shows what the daemons of the Scheduled Transfer Protocol do.", "stpctl");
  app.set_version_flag("--version", "stpctl " STP_VERSION);
  app.add_option("--socket", options.sockets,
                 "Socket of the daemon: its path, or the NAME of its link; may be given several "
                 "times [that of STP_LINK; else all in " +
                     std::string(service::kSocketDirectory) + "]")
      ->type_name("PATH|NAME")
      ->allow_extra_args(false);
  app.add_flag("--json", options.json, "JSON instead of text");
  app.footer("Exit status: 0 for success, 1 if the command failed, 2 for a wrong command line.");
  const auto is = [&options](cli::App* sub, Command command) {
    sub->fallthrough();
    sub->final_callback([&options, command] { options.command = command; });
  };
  const auto is_parent = [&options](cli::App* sub, Command command) {
    sub->fallthrough();
    sub->parse_complete_callback([&options, command] { options.command = command; });
  };
  add_lists(app, options, is);
  add_top(app, options, is);
  add_trace(app, options, is_parent);
  add_ping(app, options, is);
  add_dat_conf(app, options, is);
  app.require_subcommand(0, 1);
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const cli::ParseError& error) {
    exit_status = app.report(error, kUsageError);
    return std::nullopt;
  }
  auto wrong = unknown_command(app);
  if (wrong.empty()) wrong = app.missing_command();
  complete(options);
  if (wrong.empty()) wrong = check(options);
  if (wrong.empty()) return options;
  exit_status = cli::usage_error("stpctl", wrong, kUsageError);
  return std::nullopt;
}

}  // namespace stp::stpctl
