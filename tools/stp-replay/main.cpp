// SPDX-License-Identifier: BSD-3-Clause
// stp-replay: decodes captures, checks them against the protocol, and replays them on this Node.
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libst/os/standard_streams.h"
#include "stp/base/printable.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/json/json.h"
#include "tools/replay/check/checker.h"
#include "tools/replay/ladder/ladder.h"
#include "tools/replay/play/player.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

// The exit status of each command.
constexpr int kNothingWrong = 0, kFindings = 1, kCannotRead = 2;

struct Options {
  std::string file;
  bool json = false;
  CheckerOptions check;
  std::string station;  // play: the station to replace; check: where the capture was made
  std::string link;     // play: an interface; empty: a Node in this program
  std::vector<std::uint16_t> udp_ports;  // of STP, besides the usual one
  // ladder:
  std::string out;    // the file that is written; its ending says what: .html or .svg
  std::string pages;  // the address of the folder of protocol.md, for links
  std::uint64_t from = 1;
  std::size_t frames = 0;  // at most; 0: as many as the kind of file bears
};

void print(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

std::string json_of(const Difference& difference) {
  Json json;
  json.object().value("kind", "difference").value("frame", difference.frame);
  return json.value("trace", difference.in_trace).value("live", difference.live).end().text();
}

std::string json_of(const char* kind, const std::string& text) {
  Json json;
  return json.object().value("kind", kind).value("text", text).end().text();
}

// Prints the two frames one above the other, because their lines are long.
std::string lines_of(const Difference& difference) {
  const auto or_nothing = [](const std::string& text) { return text.empty() ? "(nothing)" : text; };
  return "at frame " + std::to_string(difference.frame) +
         "\n  trace: " + or_nothing(difference.in_trace) +
         "\n  live:  " + or_nothing(difference.live);
}

int cannot_read(const std::string& error) {
  std::fflush(stdout);
  cli::say("stp-replay", error);
  return kCannotRead;
}

std::optional<Capture> open(const Options& options, std::string& error) {
  auto capture = Capture::open(options.file, error);
  if (capture) capture->set_udp_ports(options.udp_ports);
  return capture;
}

std::string none_of_stp(std::uint64_t frames) {
  return (frames == 0
              ? "no frame is in this capture"
              : "none of the " + std::to_string(frames) + " frames in this capture is of STP") +
         std::string(
             ", so there is nothing to check; was it made on the interface that carries STP, while "
             "programs used it, with a filter as in docs/conformance.md? A UDP port other than "
             "8181 "
             "has to be named: --udp-port");
}

int no_station(const std::string& option, const std::string& text) {
  return cannot_read(option + ' ' + text +
                     ": write a station as decode shows it: " + kStationWords);
}

std::string not_in_trace(const Options& options, const std::string& option,
                         const StationSearch& search) {
  return options.file + ": no frame is from or to " + option + ' ' + options.station +
         "; there are " + search.others();
}

void tell_of_check_sequences(const Capture& capture, const std::string& file) {
  if (capture.found_check_sequences())
    cli::say("stp-replay", file +
                               ": frames end with check sequences (FCS) of which the file does not "
                               "tell: they are taken off");
}

struct Counted {
  std::uint64_t frames = 0, of_stp = 0, cut_short = 0;
};

std::string all_cut(std::uint64_t frames) {
  return "the capture has cut all " + std::to_string(frames) +
         " frames of STP inside their headers, so there is nothing to check: keep whole frames, or "
         "the first 80 bytes of each, over UDP or IP 128";
}

// Reads the capture, and gives each frame to `see` and then to a checker. Returns nullopt after it
// has said what is wrong.
std::optional<Counted> run_check(const Options& options, const Checker::Sink& tell,
                                 const std::function<void(const Decoded&)>& see) {
  auto how = options.check;
  if (!options.station.empty() && !(how.at = parse_station(options.station))) {
    no_station("--at", options.station);
    return std::nullopt;
  }
  std::string error;
  auto capture = open(options, error);
  if (!capture) {
    cannot_read(error);
    return std::nullopt;
  }
  Checker checker(tell, how);
  StationSearch search(how.at.value_or(MacAddr{}));
  Decoder decoder;
  CapturedFrame captured;
  Counted counted;
  for (; capture->next(captured); ++counted.frames) {
    const auto frame = decoder.decode(captured);
    counted.of_stp += frame.is_stp() ? 1 : 0;
    counted.cut_short += frame.cut_short ? 1 : 0;
    if (how.at && frame.is_stp()) search.see(frame);
    see(frame);
    if (capture->dropped() != 0) checker.lose(frame, capture->dropped());
    checker.frame(frame);
  }
  // A pipe may tell only at its end.
  Decoded at_end;
  at_end.number = counted.frames;
  at_end.time = captured.time;
  if (capture->dropped() != 0) checker.lose(at_end, capture->dropped());
  checker.finish();
  tell_of_check_sequences(*capture, options.file);
  const bool lacks_station = how.at && counted.of_stp != 0 && !search.found();
  if (capture->error().empty() && !lacks_station) return counted;
  cannot_read(lacks_station ? not_in_trace(options, "--at", search) : capture->error());
  return std::nullopt;
}

// A page shows what is in sight; of a picture, everything is drawn.
constexpr std::size_t kFramesOfPage = 100'000, kFramesOfPicture = 1'000;

// The name of the file. Bytes that are not ASCII may be no text.
std::string title_of(const std::string& file) {
  auto name = file == "-" ? "standard input" : file.substr(file.rfind('/') + 1);
  for (char& c : name)
    if (static_cast<unsigned char>(c) > 0x7e) c = '?';
  return name;
}

// Sets errno if it fails.
bool write(const std::string& path, const std::string& content) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "we"),
                                                             std::fclose);
  return file && std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
         std::fflush(file.get()) == 0;
}

int decode(const Options& options) {
  std::string error;
  auto capture = open(options, error);
  if (!capture) return cannot_read(error);
  Decoder decoder;
  ManagedView managed;
  CapturedFrame captured;
  std::int64_t start = 0;
  while (capture->next(captured)) {
    if (captured.number == 1) start = captured.time;
    const auto frame = decoder.decode(captured);
    const auto details = managed.look(frame);
    print(options.json ? json_of(frame, details) : line_of(frame, start, details));
  }
  tell_of_check_sequences(*capture, options.file);
  return capture->error().empty() ? kNothingWrong : cannot_read(capture->error());
}

int check(const Options& options) {
  std::uint64_t findings = 0, notes = 0;
  const auto tell = [&](const Finding& finding) {
    ++(finding.is_note() ? notes : findings);
    print(options.json ? json_of(finding) : line_of(finding));
  };
  const auto counted = run_check(options, tell, [](const Decoded&) {});
  if (!counted) return kCannotRead;
  if (counted->of_stp == 0) return cannot_read(options.file + ": " + none_of_stp(counted->frames));
  if (!options.json)
    std::printf("%" PRIu64 " frames, %" PRIu64 " of STP, %" PRIu64 " findings, %" PRIu64 " notes\n",
                counted->frames, counted->of_stp, findings, notes);
  if (counted->cut_short == counted->of_stp)
    return cannot_read(options.file + ": " + all_cut(counted->of_stp));
  return findings == 0 ? kNothingWrong : kFindings;
}

int ladder(const Options& options) {
  const bool html = options.out.ends_with(".html");
  if (!html && !options.out.ends_with(".svg"))
    return cannot_read("--out " + options.out +
                       ": the name ends in .html or .svg, which says what "
                       "is drawn");
  Ladder drawn(title_of(options.file), {options.from, options.frames != 0 ? options.frames
                                                      : html              ? kFramesOfPage
                                                                          : kFramesOfPicture});
  ManagedView managed;
  const auto counted = run_check(
      options, [&](const Finding& finding) { drawn.add(finding); },
      [&](const Decoded& frame) { drawn.add(frame, managed.look(frame)); });
  if (!counted) return kCannotRead;
  if (counted->of_stp == 0) return cannot_read(options.file + ": " + none_of_stp(counted->frames));
  if (drawn.rows().empty())
    return cannot_read(options.file + ": no frame of STP is at --from " +
                       std::to_string(options.from) + " or behind it");
  if (!write(options.out, html ? html_of(drawn, options.pages) : svg_of(drawn, options.pages)))
    return cannot_read(options.out + ": " + std::strerror(errno));
  std::printf("%s: %zu frames, %zu stations, %zu connections, %zu findings and notes\n",
              printable(options.out).c_str(), drawn.rows().size(), drawn.stations().size(),
              drawn.conversations().size(), drawn.findings().size());
  if (drawn.other_frames() + drawn.other_findings() != 0)
    std::printf("not drawn: %" PRIu64 " more frames of STP, %" PRIu64
                " more findings and notes; --from and --frames choose\n",
                drawn.other_frames(), drawn.other_findings());
  return kNothingWrong;
}

int play(const Options& options) {
  const auto station = parse_station(options.station);
  if (!station) return no_station("--as", options.station);
  std::string error;
  auto capture = open(options, error);
  if (!capture) return cannot_read(error);
  StationSearch search(*station);
  const auto trace = record(*capture, error, [&](const Decoded& frame) { search.see(frame); });
  if (!trace) return cannot_read(options.file + ": " + error);
  if (trace->empty()) return cannot_read(options.file + ": no frame of STP is in this capture");
  if (!search.found()) return cannot_read(not_in_trace(options, "--as", search));
  if (talks_to_itself(*trace, *station))
    return cannot_read(options.file + ": " + options.station +
                       " talks to itself, and only one of two stations can be replaced: capture "
                       "two with addresses of their own, as 127.0.0.1 and 127.0.0.2");
  const auto result = options.link.empty() ? play_node(*trace, *station)
                                           : play_link(*trace, *station, options.link, error);
  if (!error.empty()) return cannot_read(error);
  if (!result.refused.empty()) return cannot_read(options.file + ": " + result.refused);
  for (const auto& trouble : result.troubles)
    print(options.json ? json_of("not played", trouble) : "not played: " + printable(trouble));
  for (const auto& note : result.notes)
    print(options.json ? json_of("note", note) : "note: " + printable(note));
  for (const auto& difference : result.differences)
    print(options.json ? json_of(difference) : lines_of(difference));
  if (!options.json)
    std::printf("%zu frames delivered, %zu of %zu answered as in the trace, %zu differences\n",
                result.delivered, result.matched, result.expected, result.differences.size());
  return result.differences.empty() ? kNothingWrong : kFindings;
}

int list_rules(const Options& options) {
  const auto certainty = [](Certainty how) {
    if (how == Certainty::kNote) return "note";
    return how == Certainty::kSure ? "sure" : "if-all";
  };
  for (const auto& rule : rules()) {
    if (options.json) {
      Json json;
      json.object().value("section", rule.section).value("rule", rule.name);
      json.value("certainty", certainty(rule.certainty)).value("text", rule.text);
      print(json.end().text());
    } else {
      std::printf("%-5s %-19s %-7s %s\n", std::string(rule.section).c_str(),
                  std::string(rule.name).c_str(), certainty(rule.certainty),
                  std::string(rule.text).c_str());
    }
  }
  return kNothingWrong;
}

}  // namespace
}  // namespace stp::replay

namespace {

constexpr std::size_t kMostFrames = 1'000'000;  // a browser takes no larger page
constexpr unsigned kMostUdpPort = 65'535;

// Of the program, with examples from its commands, or of one of them.
std::string footer_with(const std::string& examples) {
  return "Exit status: 0 nothing wrong, 1 check or play has found something (ladder draws it and "
         "ends\n"
         "with 0), 2 the file cannot be read, has no frame of STP to check that has its whole "
         "header,\n"
         "the output cannot be written, or the command line is wrong. FILE is pcap or pcapng, or "
         "-\n"
         "for standard input:\n" +
         examples + "\nMore in docs/conformance.md.";
}

constexpr char kCheckExamples[] =
    "  tcpdump -i eth0 -w - 'ether proto 0x8181 or ether[20:2] = 0x8181' | stp-replay check -\n"
    "  tcpdump -i eth0 -w - udp port 8181 | stp-replay check -    (STP over UDP)";

void add_drawing(stp::cli::App& ladder, stp::replay::Options& options) {
  ladder
      .add_option("-o,--out", options.out,
                  "The file to write: NAME.html, a page that scrolls, filters and shows fields, or "
                  "NAME.svg, a picture")
      ->required()
      ->type_name("FILE");
  ladder.add_option("--from", options.from, "The number of the first frame to draw")
      ->capture_default_str()
      ->positive();
  ladder.add_option("--frames", options.frames, "How many frames to draw at most")
      ->between(std::size_t{1}, kMostFrames)
      ->default_str("100000 in a page, 1000 in a picture");
  ladder
      .add_option("--docs", options.pages,
                  "The address of the folder that has protocol.md: findings link there")
      ->type_name("URL")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  stp::os::hold_standard_streams();
  stp::replay::Options options;
  options.pages = "file://" STP_DOCS;
  stp::cli::App app("Reads captures of the Scheduled Transfer Protocol.", "stp-replay");
  app.set_version_flag("--version", "stp-replay " STP_VERSION);
  app.footer(footer_with(kCheckExamples));
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
    command->add_flag("--endpoints", options.check.endpoints,
                      "Ports without a connection in the capture are connectionless endpoints, not "
                      "connections from before the capture");
    command
        ->add_option(
            "--at", options.station,
            std::string("The station at which the capture was made, in words of decode (") +
                stp::replay::kStationWords +
                "): frames of others may have been lost, duplicated or delayed on the way there")
        ->type_name("STATION")
        ->default_str("none: no frame was lost");
  }
  add_drawing(*ladder, options);
  auto* const play = app.add_subcommand(
      "play", "Put a live Node, or a peer on a link, in the place of one station of the trace");
  play->add_option("--as", options.station,
                   std::string("The station, in words of decode: ") + stp::replay::kStationWords)
      ->type_name("STATION")
      ->required();
  play->add_option("--link", options.link,
                   "Play to that station over this Ethernet interface, instead of to a Node")
      ->type_name("INTERFACE");
  auto* const rules = app.add_subcommand("rules", "List the rules that check uses");
  rules->add_flag("--json", options.json, "One JSON object a line");
  for (auto* const command : {decode, check, ladder, play}) {
    command
        ->add_option(
            "--udp-port", options.udp_ports,
            "Datagrams of UDP from or to this port are of STP, too, as those of port 8181. "
            "May be given several times")
        ->between(1U, kMostUdpPort)
        ->allow_extra_args(false);
    command->add_option("FILE", options.file, "The capture")->required();
  }
  for (auto* const command : {decode, check, play})
    command->add_flag("--json", options.json, "One JSON object a line");
  decode->footer(footer_with("  stp-replay decode slow.pcapng"));
  ladder->footer(footer_with("  stp-replay ladder slow.pcapng -o slow.html"));
  play->footer(footer_with("  stp-replay play --as 10.0.0.5/8181 slow.pcapng"));
  rules->footer(
      "Exit status: 0 for success, 2 for a wrong command line.\nExample: stp-replay rules --json");
  if (const auto status = app.parse_or_report(argc, argv, stp::replay::kCannotRead))
    return stp::os::status_with_output("stp-replay", *status, stp::replay::kCannotRead);
  const auto command = rules->parsed()    ? stp::replay::list_rules
                       : play->parsed()   ? stp::replay::play
                       : check->parsed()  ? stp::replay::check
                       : ladder->parsed() ? stp::replay::ladder
                                          : stp::replay::decode;
  return stp::os::status_with_output("stp-replay", command(options), stp::replay::kCannotRead);
}
