// SPDX-License-Identifier: BSD-3-Clause
// The options of stpd, which have the same names on the command line and in the configuration file,
// and that file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libst/host/budgets.h"
#include "libst/host/poll_loop.h"
#include "libst/ipc/socket.h"
#include "tools/cli/app.h"
#include "tools/stpd/log.h"

namespace stp::stpd {

// In which line of the file an option stands, by its name. No part of what the options say.
struct Lines {
  std::map<std::string, int> of;

  friend bool operator==(const Lines&, const Lines&) { return true; }
};

struct LinkOptions {
  std::string name = "stpd";  // programs name the link by STP_LINK=stpd:NAME
  std::string link;
  std::string socket;  // "": derived from the name
  std::string address;
  host::PollPolicy poll = host::PollPolicy::kAdaptive;
  std::vector<unsigned> cpus;            // none: any
  std::optional<std::uint64_t> granted;  // see Service; nullopt: its default
  std::string pcap;                      // "": no trace
  std::uint64_t pcap_frames = ~std::uint64_t{0};
  std::uint32_t pcap_snap = 0;  // 0: whole frames
  std::uint64_t pcap_buffer = std::uint64_t{64} << 20;
  Lines lines;  // of `main` also those of the daemon's options

  friend bool operator==(const LinkOptions&, const LinkOptions&) = default;
};

// The options of stpd. They have the same names on the command line and in the configuration file.
struct Options {
  LinkOptions main;                // of the command line, and of the file above its first section
  std::vector<LinkOptions> links;  // all links, `main` included
  std::string user, group;         // to switch to after start; "": unchanged
  std::string admin_group;         // "": none
  std::string socket_owner, socket_group;
  ipc::SocketAccess socket_access;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  host::Quotas quotas;
  std::vector<std::string> listen;
  std::vector<host::PortRule> rules;  // from `listen`
  std::string file;                   // "": none was read

  // "FILE:LINE: " of the first of these options that stands in the file; "": none does.
  [[nodiscard]] std::string place_of(const LinkOptions& link,
                                     std::initializer_list<const char*> names) const;
};

// The result of parsing a command line.
struct Choice {
  std::optional<Options> options;  // nullopt: the program ends with `exit_status`
  int exit_status = 0;             // the reason has been printed
};
Choice parse_options(int argc, char** argv);
// Parses the same command line again, with the present configuration file. nullopt: see the errors.
std::optional<Options> reload_options(int argc, char** argv, std::vector<std::string>& errors);

// The names of the options that differ and that need a restart to change.
std::vector<std::string> needs_restart(const Options& now, const Options& wanted);

// The configuration file: TOML lines name = value. The names are those of the command line without
// their dashes. Lines above the first section apply to the daemon, or to its only link. [link.NAME]
// begins a link with that name.

// Adds the options of the file to `out`, and all its errors to `errors`, each with its line and
// remedy. Returns false if there are errors.
bool read_config(const std::string& path, Options& out, std::vector<std::string>& errors);

// option_table.cpp: parses the values of options. An invalid value throws cli::ValidationError,
// which names the option, its value and the allowed values.
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

// Completes `links`, and checks what concerns several options: missing links, and what collides.
// Returns false if it has added errors.
bool complete(Options& options, std::vector<std::string>& errors);

// collisions.cpp: adds an error for each two links that cannot be open at once, and for each file
// that stpd would write or make twice, with the line of the second one. The links are complete.
void find_collisions(const Options& options, std::vector<std::string>& errors);

// The files that stpd has: its log, its configuration, and what it or a driver of its links writes
// or reads. What it may not look at any more, once it has given up its rights, it knows by what it
// was, and by its place if it has been replaced since.
class OwnFiles {
 public:
  // A number of an inode is given to another file when the first one has gone: that is younger.
  struct Identity {
    std::uint32_t major, minor;
    std::uint64_t inode;
    std::int64_t born;
    std::uint32_t born_nanoseconds;
    friend bool operator==(const Identity&, const Identity&) = default;
  };

  // Call when the links have made their files, while stpd has its rights, and before has().
  void look(const Options& options);
  // Whether an open file is one of them. Any thread may call it.
  [[nodiscard]] bool has(int file) const;

 private:
  struct File {
    std::string path, place;
    std::optional<Identity> seen;  // by look()
  };
  std::vector<File> files_;
};

}  // namespace stp::stpd
