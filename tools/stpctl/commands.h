// SPDX-License-Identifier: BSD-3-Clause
// The commands of stpctl, one function each, and the command line that chooses one of them
// (options.cpp has the table). A command that fails throws Failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stp::stpctl {

// The command line of stpctl.
struct Options {
  void (*run)(const Options&) = nullptr;  // the command
  std::vector<std::string> sockets;       // paths, at least one
  bool json = false;
  std::chrono::milliseconds patience{10'000};  // with a daemon that does not answer
  // stats
  bool all = false, shards = false, prometheus = false;
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

// nullopt: the program ends with `exit_status`; help or the error has been printed.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status);

// These query each daemon once, and print text or JSON. A stopped daemon has all its links silent:
// after the first one, the others are given a tenth of the time.
void show_links(const Options& options);
void show_connections(const Options& options);
void show_regions(const Options& options);
void show_users(const Options& options);
void show_stats(const Options& options);
// Prints live rates, from the changes of the counters from one sample to the next.
void top(const Options& options);
// Traces that the daemon makes, into a file that this program opens: one that ends with this
// program, and one that goes on, with what stops it and tells how it is.
void trace(const Options& options);
void trace_start(const Options& options);
void trace_stop(const Options& options);
void trace_status(const Options& options);
// Measures round trips to a peer, with only the public API of libst. The peer may be any program
// that listens: its Node answers Request_State. The program sees only a connection that opens and
// closes. With --serve it listens for pings until Ctrl-C.
void ping(const Options& options);
// Prints lines for /etc/dat.conf, which the registry of DAT reads.
void dat_conf(const Options& options);
// What dat.conf could not carry; "": nothing.
std::string reason_against_dat_conf(const Options& options);
// Lists what could be a link on this machine. Asks no daemon and opens no device.
void devices(const Options& options);

}  // namespace stp::stpctl
