// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stp-sim/options.h"

#include <algorithm>
#include <charconv>

#include "stp/node/shards.h"
#include "tools/cli/app.h"

namespace stp::sim {
namespace {

constexpr int kUsageError = 2;

// "1..2000"
std::string parse_range(const std::string& text, Options& options) {
  const auto* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, options.first_seed);
  constexpr std::string_view kTo = "..";
  const bool good = first.ec == std::errc{} && std::string_view(first.ptr).starts_with(kTo);
  if (good) {
    const auto last = std::from_chars(first.ptr + kTo.size(), end, options.last_seed);
    if (last.ec == std::errc{} && last.ptr == end && options.first_seed <= options.last_seed)
      return {};
  }
  return "seeds are given as FIRST..LAST";
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  std::string seeds;
  cli::App app("Plays the protocol over simulated faulty links, reproducible by seed.", "stp-sim");
  app.set_version_flag("--version", "stp-sim " STP_VERSION);
  auto* const seed = app.add_option("--seed", options.seed, "Play the run of this seed");
  auto* const many =
      app.add_option("--seeds", seeds, "Play many runs: FIRST..LAST")
          ->check([&](const std::string& text) { return parse_range(text, options); });
  app.add_option("--profile", options.profile, "The kind of faults: see --list; or all")
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "Runs at the same time")
      ->between(1, 256)
      ->capture_default_str();
  auto* const nodes =
      app.add_option("--nodes", options.nodes, "Nodes behind the address of each host")
          ->between(1U, Shards::kMost)
          ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "A line per frame and event")->needs(seed);
  auto* const pcapng =
      app.add_option("--pcapng", options.pcapng, "Write all frames of the run to this file")
          ->needs(seed);
  app.add_option("--pcapng-host", options.pcapng_host,
                 "Only frames that host N (02:00:00:00:00:N) sends or receives")
      ->between(1, 255)
      ->needs(pcapng);
  auto* const list = app.add_flag("--list", options.list, "List the profiles");
  auto* const incast = app.add_option("--incast", options.incast,
                                      "This many senders to one receiver, with and without pacing")
                           ->between(1, 4096);
  auto* const overhead = app.add_flag("--overhead", options.overhead,
                                      "Cost of a lossy link for one long write; also takes --seed");
  auto* const soak = app.add_option("--soak", options.soak,
                                    "Open and close connections for N hours; also takes --seed")
                         ->between(1, 96);
  nodes->excludes(list)->excludes(incast)->excludes(overhead)->excludes(soak);
  seed->excludes(many)->excludes(list)->excludes(incast);
  many->excludes(list)->excludes(incast)->excludes(overhead)->excludes(soak);
  soak->excludes(list)->excludes(incast)->excludes(overhead);
  try {
    app.parse(argc, argv);
    const auto what = {seed, many, list, incast, overhead, soak};
    if (std::all_of(what.begin(), what.end(), [](const auto* option) { return option->empty(); }))
      throw cli::ParseError::missing("--seed, --seeds, --list, --incast, --overhead or --soak");
  } catch (const cli::ParseError& error) {
    exit_status = app.report(error, kUsageError);
    return std::nullopt;
  }
  return options;
}

}  // namespace stp::sim
