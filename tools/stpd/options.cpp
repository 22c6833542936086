// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "libst/service/messages.h"

namespace stp::stpd {

std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  using service::PollPolicy;
  std::map<std::string, PollPolicy> const policies{{"busy", PollPolicy::kBusy},
                                                   {"adaptive", PollPolicy::kAdaptive}};
  Options options;
  options.socket = service::kDefaultSocket;
  std::string address;

  CLI::App app("Serves user programs of the Scheduled Transfer Protocol on one link.", "stpd");
  app.set_version_flag("--version", "stpd " STP_VERSION);
  app.set_config("--config", "", "Read options from this file (name=value lines, or TOML)");
  app.add_option("--link", options.link,
                 "The link: iface:NAME, pci:ADDRESS, memif:SOCKET, vdev:DEVICE or loop, with "
                 "options after commas")
      ->required();
  app.add_option("--socket", options.socket, "Unix socket that programs connect to")
      ->capture_default_str();
  app.add_option("--address", address, "IPv4 address of the link, as 10.9.0.1/24");
  app.add_option("--pcap", options.pcap, "Write a trace of all frames to this file (pcapng)");
  app.add_option("--pcap-frames", options.pcap_frames, "End the trace after this many frames");
  app.add_option("--poll", options.poll,
                 "busy: keep a core; adaptive: sleep when idle (the default)")
      ->transform(CLI::CheckedTransformer(policies, CLI::ignore_case));
  app.add_option("--admin-group", options.admin_group,
                 "Members of this group may see all connections and make traces with stpctl; root "
                 "and the user of stpd may anyway");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error);
    return std::nullopt;
  }
  if (!address.empty()) options.link += ",address=" + address;
  return options;
}

}  // namespace stp::stpd
