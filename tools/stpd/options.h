// SPDX-License-Identifier: BSD-3-Clause
// The options of stpd, which have the same names on the command line and in the configuration file,
// and that file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libst/ipc/socket.h"
#include "libst/service/allowances.h"
#include "libst/service/poll_loop.h"
#include "tools/stpd/log.h"

namespace stp::stpd {

struct LinkOptions {
  std::string name = "stpd";  // programs name the link by STP_LINK=stpd:NAME
  std::string link;
  std::string socket;  // "": derived from the name
  std::string address;
  service::PollPolicy poll = service::PollPolicy::kAdaptive;
  std::vector<unsigned> cpus;            // none: any
  std::optional<std::uint64_t> granted;  // see Service; nullopt: its default
  std::string pcap;                      // "": no trace
  std::uint64_t pcap_frames = ~std::uint64_t{0};
  std::uint32_t pcap_snap = 0;  // 0: whole frames
  std::uint64_t pcap_buffer = std::uint64_t{64} << 20;

  friend bool operator==(const LinkOptions&, const LinkOptions&) = default;
};

// The options of stpd. They have the same names on the command line and in the configuration file.
struct Options {
  LinkOptions main;                // of the command line, and of the file above its first section
  std::vector<LinkOptions> links;  // all links, `main` included
  std::string user, group;         // to switch to after start; "": unchanged
  std::string admin_group;         // "": none
  std::string socket_owner, socket_group;
  service::SocketAccess socket_access;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  service::Quotas quotas;
  std::vector<std::string> listen;
  std::vector<service::PortRule> rules;  // from `listen`
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

}  // namespace stp::stpd
