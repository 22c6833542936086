// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stp-replay/commands.h"

#include <cinttypes>
#include <cstdio>

#include "tools/json/json.h"
#include "tools/replay/check/checker.h"
#include "tools/replay/managed_view.h"
#include "tools/replay/play/player.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

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
  std::fprintf(stderr, "stp-replay: %s\n", error.c_str());
  return kCannotRead;
}

std::string none_of_stp(std::uint64_t frames) {
  return (frames == 0
              ? "no frame is in this capture"
              : "none of the " + std::to_string(frames) + " frames in this capture is of STP") +
         std::string(
             ", so there is nothing to check; was it made on the interface that carries STP, while "
             "programs used it, with a filter as in docs/conformance.md?");
}

int no_station(const std::string& option, const std::string& text) {
  return cannot_read(option + ' ' + text + ": a MAC address has six octets: 02:00:00:00:00:01");
}

}  // namespace

int decode(const Options& options) {
  std::string error;
  auto capture = Capture::open(options.file, error);
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
  return capture->error().empty() ? kNothingWrong : cannot_read(capture->error());
}

int check(const Options& options) {
  auto how = options.check;
  if (!options.station.empty() && !(how.at = parse_mac(options.station)))
    return no_station("--at", options.station);
  std::string error;
  auto capture = Capture::open(options.file, error);
  if (!capture) return cannot_read(error);
  std::uint64_t findings = 0, notes = 0;
  const auto tell = [&](const Finding& finding) {
    ++(finding.is_note() ? notes : findings);
    print(options.json ? json_of(finding) : line_of(finding));
  };
  Checker checker(tell, how);
  Decoder decoder;
  CapturedFrame captured;
  std::uint64_t frames = 0, of_stp = 0;
  for (; capture->next(captured); ++frames) {
    const auto frame = decoder.decode(captured);
    of_stp += frame.is_stp() ? 1 : 0;
    if (capture->dropped() != 0) checker.lose(frame, capture->dropped());
    checker.frame(frame);
  }
  // A pipe may tell only at its end.
  Decoded at_end;
  at_end.number = frames;
  at_end.time = captured.time;
  if (capture->dropped() != 0) checker.lose(at_end, capture->dropped());
  checker.finish();
  if (!capture->error().empty()) return cannot_read(capture->error());
  if (of_stp == 0) return cannot_read(options.file + ": " + none_of_stp(frames));
  if (!options.json)
    std::printf("%" PRIu64 " frames, %" PRIu64 " of STP, %" PRIu64 " findings, %" PRIu64 " notes\n",
                frames, of_stp, findings, notes);
  return findings == 0 ? kNothingWrong : kFindings;
}

int play(const Options& options) {
  const auto station = parse_mac(options.station);
  if (!station) return no_station("--as", options.station);
  std::string error;
  auto capture = Capture::open(options.file, error);
  if (!capture) return cannot_read(error);
  const auto trace = record(*capture, error);
  if (!trace) return cannot_read(options.file + ": " + error);
  if (!mentions(*trace, *station))
    return cannot_read(options.file + ": no frame is from or to " + to_string(*station));
  const auto result = options.link.empty() ? play_node(*trace, *station)
                                           : play_link(*trace, *station, options.link, error);
  if (!error.empty()) return cannot_read(error);
  if (!result.refused.empty()) return cannot_read(options.file + ": " + result.refused);
  for (const auto& trouble : result.troubles)
    print(options.json ? json_of("not played", trouble) : "not played: " + trouble);
  for (const auto& note : result.notes)
    print(options.json ? json_of("note", note) : "note: " + note);
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

}  // namespace stp::replay
