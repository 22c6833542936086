// SPDX-License-Identifier: BSD-3-Clause
// The commands of stpctl, one function each, and what the command line says to them. A command that
// fails throws Failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace stp::cli {
class App;
}

namespace stp::stpctl {

// The command line of stpctl.
struct Options {
  void (*run)(const Options&) = nullptr;  // the command
  std::vector<std::string> sockets;       // paths, at least one
  bool json = false;
  std::chrono::milliseconds patience{10'000};  // with a daemon that does not answer
  // stats
  std::vector<std::string> counters;  // only these
  bool all = false, shards = false, prometheus = false, list = false;
  // top, ping
  double interval = 1;
  std::uint64_t count = 0;  // 0: until a signal comes
  // trace
  std::string out;
  double seconds = 0;        // 0: no limit
  std::uint64_t frames = 0;  // likewise
  bool everything = false;
  std::uint32_t snap = 0;    // 0: whole frames
  std::uint64_t buffer = 0;  // bytes; 0: the daemon's default
  // ping
  std::string peer, link;
  double timeout = 1;
  bool serve = false;
  // dat-conf: uses `link`, or if that is empty the links of all `sockets`
  std::string name = "stp", provider;
};

// The commands. A row has its name, help and an example of its words; its function, which is
// declared below; what adds options of its own, and what checks them (what is wrong; "": nothing),
// or nullptr: these stand in the file of the function; whether it is for one link. A command of
// another one has the names of both. Without a name it is the first.
//
// Those that show something query each daemon once. A stopped daemon has all its links silent:
// after the first one, the others are given a tenth of the time. A trace is made by the daemon into
// a file that this program opens. ping needs only the public API of libst; the peer may be any
// program that listens, and sees only a connection that opens and closes.
// clang-format off
#define STP_COMMANDS(X)                                                                            \
  X("links", "List links: state, addresses, clients, connections, driver", "links", show_links, nullptr, nullptr, false) \
  X("connections",                                                                                 \
    "List connections: owner, peer, state, WAY (shared with others, so congestion= of the link "   \
    "controls it, or own), longest STU, free Slots, round trip, bytes both ways; - is not known yet", \
    "--socket eth1 connections",                                                                   \
    show_connections, nullptr, nullptr, false)                                                     \
  X("regions", "List memory that programs have mapped", "regions --json", show_regions, nullptr, nullptr, false) \
  X("users", "List what each user holds of each budget, and may hold", "users", show_users, nullptr, nullptr, false) \
  X("stats", "List counters with their meaning", "stats --all", show_stats, add_stats, check_stats, false) \
  X("devices",                                                                                     \
    "List what could be a link on this machine, with the link string to copy, or why it cannot be " \
    "one; needs no daemon", "devices", devices, nullptr, nullptr, false)                           \
  X("top", "Show live rates of links, programs and connections; on a terminal, ? lists the keys", \
    "top --interval 0.5", top, add_top, nullptr, false)                                            \
  X("trace", "Capture frames inside the daemon, as pcapng, until Ctrl-C or a limit is reached",    \
    "trace --out slow.pcapng --for 10", trace, add_trace, check_trace, true)                       \
  X("trace start", "Start a trace that continues after stpctl has ended",                          \
    "trace start --out slow.pcapng --frames 100000", trace_start, add_trace, check_trace, true)    \
  X("trace stop", "Stop the running trace", "trace stop", trace_stop, nullptr, nullptr, true)      \
  X("trace status", "Show what has been captured so far", "trace status --json", trace_status, nullptr, nullptr, true) \
  X("ping",                                                                                        \
    "Connect to HOST:PORT, where any program may listen, and measure round trips of "              \
    "Request_State, which the peer's Node answers without that program",                           \
    "ping --count 100 --interval 0 10.9.0.2:3000", ping, add_ping, check_ping, true)               \
  X("dat-conf", "Print lines for /etc/dat.conf, by which DAT programs find the links; needs no daemon", \
    "dat-conf --name stp --link iface:eth0", dat_conf, add_dat_conf, check_dat_conf, false)
// clang-format on

#define STP_COMMAND(name, help, example, run, ...) void run(const Options&);
STP_COMMANDS(STP_COMMAND)
#undef STP_COMMAND

void add_stats(cli::App& stats, Options& options);
std::string check_stats(const Options& options);
void add_top(cli::App& top, Options& options);
void add_trace(cli::App& trace, Options& options);
std::string check_trace(const Options& options);
void add_ping(cli::App& ping, Options& options);
std::string check_ping(const Options& options);
void add_dat_conf(cli::App& conf, Options& options);
std::string check_dat_conf(const Options& options);
// Bounds of options in seconds. The longest fits into nanoseconds of 64 bits.
inline constexpr double kLeastSeconds = 1e-3, kMostSeconds = 1e9;

}  // namespace stp::stpctl
