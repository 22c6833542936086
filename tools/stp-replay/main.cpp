// SPDX-License-Identifier: BSD-3-Clause
// stp-replay: decodes captures, checks them against the protocol, and replays them on this Node.
#include "libst/os/standard_streams.h"
#include "tools/cli/app.h"
#include "tools/stp-replay/commands.h"

namespace {

constexpr std::size_t kMostFrames = 1'000'000;  // a browser takes no larger page

constexpr unsigned kMostUdpPort = 65'535;

constexpr const char* kFooter =
    "Exit status: 0 nothing wrong, 1 check or play has found something (ladder draws it and ends\n"
    "with 0), 2 the file cannot be read, has no frame of STP to check, the output cannot be\n"
    "written, or the command line is wrong. FILE is pcap or pcapng, or - for standard input:\n"
    "  tcpdump -i eth0 -w - 'ether proto 0x8181 or ether[20:2] = 0x8181' | stp-replay check -\n"
    "  tcpdump -i eth0 -w - udp port 8181 | stp-replay check -    (STP over UDP)\n"
    "More in docs/conformance.md.";

void add_drawing(stp::cli::App& ladder, stp::replay::Options& options) {
  ladder
      .add_option(
          "-o,--out", options.out,
          "The file to write: NAME.html, a page that scrolls, filters and shows fields, or\n"
          "NAME.svg, a picture")
      ->required()
      ->type_name("FILE");
  ladder.add_option("--from", options.from, "The number of the first frame to draw")
      ->capture_default_str()
      ->positive();
  ladder
      .add_option("--frames", options.frames,
                  "How many frames to draw at most (default: 100000 in a page, 1000 in a picture)")
      ->between(std::size_t{1}, kMostFrames);
  ladder
      .add_option("--docs", options.pages,
                  "The address of the folder that has protocol.md: findings link there")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  stp::service::hold_standard_streams();
  stp::replay::Options options;
  options.pages = "file://" STP_DOCS;
  stp::cli::App app("Reads captures of the Scheduled Transfer Protocol.", "stp-replay");
  app.set_version_flag("--version", "stp-replay " STP_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1, 1);

  auto* const decode = app.add_subcommand("decode", "Print each frame");
  auto* const check =
      app.add_subcommand("check", "Check each frame against the rules of the protocol");
  auto* const ladder = app.add_subcommand(
      "ladder", "Draw the frames as arrows between their stations, with the findings of check");
  for (auto* const command : {check, ladder}) {
    command->add_flag(
        "--lossy", options.check.lossy,
        "The capture lacks frames: faults that a missing frame explains become notes");
    command->add_flag(
        "--endpoints", options.check.endpoints,
        "Ports without a connection in the capture are connectionless endpoints, not\n"
        "connections from before the capture");
    command->add_option(
        "--at", options.station,
        "The MAC address of the station at which the capture was made: frames of others\n"
        "may have been lost, duplicated or delayed on the way there");
  }
  add_drawing(*ladder, options);
  auto* const play = app.add_subcommand(
      "play", "Put a live Node, or a peer on a link, in the place of one station of the trace");
  play->add_option("--as", options.station, "The station's MAC address")->required();
  play->add_option("--link", options.link,
                   "Play to that station over this Ethernet interface, instead of to a Node");
  auto* const rules = app.add_subcommand("rules", "List the rules that check uses");
  rules->add_flag("--json", options.json, "One JSON object a line");
  for (auto* const command : {decode, check, ladder, play}) {
    command
        ->add_option(
            "--udp-port", options.udp_ports,
            "Datagrams of UDP from or to this port are of STP, too, as those of port 8181.\n"
            "May be given several times")
        ->between(1U, kMostUdpPort)
        ->allow_extra_args(false);
    command->add_option("FILE", options.file, "The capture")->required();
  }
  for (auto* const command : {decode, check, play})
    command->add_flag("--json", options.json, "One JSON object a line");
  try {
    app.parse(argc, argv);
  } catch (const stp::cli::ParseError& error) {
    const auto status = app.report(error, stp::replay::kCannotRead);
    return stp::service::status_with_output("stp-replay", status, stp::replay::kCannotRead);
  }
  const auto command = rules->parsed()    ? stp::replay::list_rules
                       : play->parsed()   ? stp::replay::play
                       : check->parsed()  ? stp::replay::check
                       : ladder->parsed() ? stp::replay::ladder
                                          : stp::replay::decode;
  return stp::service::status_with_output("stp-replay", command(options), stp::replay::kCannotRead);
}
