// SPDX-License-Identifier: BSD-3-Clause
// Plays one run of the simulation again, or many runs.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "dpdk_port/link/start_thread.h"
#include "libst/os/standard_streams.h"
#include "stp/base/mutex.h"
#include "stp/node/shards.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/sim/simulation.h"

namespace stp::sim {
namespace {

// The command line.
struct Options {
  std::optional<std::uint64_t> seed;            // one run
  std::uint64_t first_seed = 0, last_seed = 0;  // many
  std::string profile = "all";
  unsigned jobs = 1;
  unsigned nodes = 1;  // behind the address of each host
  bool verbose = false;
  std::string pcapng;
  unsigned pcapng_host = 0;  // 0: all
  bool list = false;
  unsigned incast = 0;  // senders
  bool overhead = false;
  unsigned soak = 0;  // hours
};

constexpr int kBadUsage = 2;

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
  return "'" + text + "' is no range of seeds: write FIRST..LAST, as 1..2000";
}

// Returns nullopt if the program must exit with `exit_status`.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  Options options;
  std::string seeds;
  cli::App app("Plays the protocol over simulated faulty links, reproducible by seed.", "stp-sim");
  app.set_version_flag("--version", "stp-sim " STP_VERSION);
  app.footer(
      "Exit status: 0 if every run passed, 1 if one failed, 2 for a wrong command line.\n"
      "Examples: stp-sim --seeds 1..2000 --jobs 2\n"
      "          stp-sim --seed 17 --profile reorder --verbose");
  auto* const seed = app.add_option("--seed", options.seed, "Play the run of this seed");
  auto* const many =
      app.add_option("--seeds", seeds, "Play many runs, as 1..2000")
          ->type_name("FIRST..LAST")
          ->check([&](const std::string& text) { return parse_range(text, options); });
  auto* const profile =
      app.add_option("--profile", options.profile, "The kind of faults: see --list; or all")
          ->type_name("NAME")
          ->capture_default_str();
  app.add_option("--jobs", options.jobs, "Runs at the same time")
      ->between(1, 256)
      ->capture_default_str()
      ->needs(many);
  auto* const nodes =
      app.add_option("--nodes", options.nodes, "Nodes behind the address of each host")
          ->between(1U, Shards::kMost)
          ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "A line per frame and event")->needs(seed);
  auto* const pcapng =
      app.add_option("--pcapng", options.pcapng, "Write all frames of the run to this file")
          ->type_name("FILE")
          ->needs(seed);
  app.add_option("--pcapng-host", options.pcapng_host,
                 "Only frames that host N (02:00:00:00:00:N) sends or receives")
      ->between(1, 255)
      ->default_str("of all")
      ->needs(pcapng);
  auto* const list = app.add_flag("--list", options.list, "List the profiles");
  auto* const incast = app.add_option("--incast", options.incast,
                                      "This many senders to one receiver, with and without pacing")
                           ->between(1, 4096);
  auto* const overhead = app.add_flag("--overhead", options.overhead,
                                      "Cost of a lossy link for one long write; also takes --seed");
  auto* const soak = app.add_option("--soak", options.soak,
                                    "Open and close connections for so long; also takes --seed")
                         ->type_name("HOURS")
                         ->between(1, 96);
  for (auto* const of_runs : {profile, nodes})
    of_runs->excludes(list)->excludes(incast)->excludes(overhead)->excludes(soak);
  seed->excludes(many)->excludes(list)->excludes(incast);
  many->excludes(list)->excludes(incast)->excludes(overhead)->excludes(soak);
  soak->excludes(list)->excludes(incast)->excludes(overhead);
  try {
    app.parse(argc, argv);
    const auto what = {seed, many, list, incast, overhead, soak};
    if (std::all_of(what.begin(), what.end(), [](const auto* option) { return option->empty(); }))
      throw cli::ParseError::missing("--seed, --seeds, --list, --incast, --overhead or --soak");
  } catch (const cli::ParseError& error) {
    exit_status = app.report(error, kBadUsage);
    return std::nullopt;
  }
  return options;
}

// Plays many runs, several at the same time.
struct Campaign {
  std::uint64_t first_seed = 0, last_seed = 0;
  const Profile* profile = nullptr;  // nullptr: all of them, in turn
  unsigned jobs = 1;
  unsigned nodes = 1;
};

struct Totals {
  std::uint64_t runs = 0, failures = 0, frames = 0, faults = 0, handed_over = 0;
  // Counted over the runs without faults.
  std::uint64_t intact_frames = 0, repeats = 0, calls = 0, questions = 0;
  Time simulated = 0;

  void add(const Result& result) {
    ++runs;
    failures += result.failures.empty() ? 0 : 1;
    frames += result.frames;
    faults += result.faults;
    handed_over += result.handed_over;
    simulated += result.simulated;
    if (result.faults != 0) return;
    intact_frames += result.frames;
    repeats += result.repeats;
    calls += result.calls;
    questions += result.questions;
  }
};

// Formatted before the run begins, because a signal handler must not build strings.
thread_local std::array<char, 128> current_run{};

void on_crash(int signal) {
  const auto say = [](const char* text) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
  };
  say("crashed; replay with:\n  ");
  say(current_run.data());
  say("\n");
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

// The command that plays a failed run again.
std::string replay_command(const Profile& profile, std::uint64_t seed, unsigned nodes) {
  return "stp-sim --seed " + std::to_string(seed) + " --profile " + profile.name +
         (nodes == 1 ? "" : " --nodes " + std::to_string(nodes)) + " --verbose";
}

void report(const Profile& profile, std::uint64_t seed, unsigned nodes, const Result& result) {
  std::printf("FAILED profile %s seed %" PRIu64 "\n", profile.name, seed);
  for (const auto& failure : result.failures) std::printf("  %s\n", failure.c_str());
  std::printf("  replay: %s\n", replay_command(profile, seed, nodes).c_str());
  std::fflush(stdout);
}

// The profile of a seed in a campaign of all profiles.
const Profile& profile_of(std::uint64_t seed) {
  constexpr std::uint64_t kSlowOnes = 2500;  // one seed in this many plays a slow profile
  std::uint64_t total = 0;
  for (const auto& profile : profiles()) {
    if (profile.weight == 0 && seed % kSlowOnes == 0) return profile;
    total += profile.weight;
  }
  auto at = seed % total;
  const auto* profile = profiles().data();
  for (; at >= profile->weight; ++profile) at -= profile->weight;
  return *profile;
}

// Prints the replay command if a run crashes the program.
void name_run_on_crash() {
  for (const auto signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, on_crash);
}

void set_current_run(const Profile& profile, std::uint64_t seed, unsigned nodes) {
  std::snprintf(current_run.data(), current_run.size(), "%s",
                replay_command(profile, seed, nodes).c_str());
}

// Plays the runs. Prints each failure with its replay command, and a summary line at the end.
// Returns the number of failed runs.
std::uint64_t play(const Campaign& campaign) {
  std::atomic<std::uint64_t> next{campaign.first_seed};
  Mutex mutex;  // of the totals, and of what is printed
  Totals totals;
  const auto work = [&] {
    for (;;) {
      const auto seed = next.fetch_add(1);
      if (seed > campaign.last_seed) return;
      const auto& profile = campaign.profile != nullptr ? *campaign.profile : profile_of(seed);
      set_current_run(profile, seed, campaign.nodes);
      const auto result = simulate(profile, seed, {}, campaign.nodes);
      const Lock lock(mutex);
      totals.add(result);
      if (!result.failures.empty()) report(profile, seed, campaign.nodes, result);
    }
  };
  {
    std::vector<std::jthread> workers;
    try {
      for (unsigned i = 1; i < campaign.jobs; ++i) workers.emplace_back(work);
    } catch (const std::system_error& error) {  // those that there are do it
      cli::say("stp-sim", std::to_string(workers.size() + 1) + " of " +
                              std::to_string(campaign.jobs) +
                              " --jobs: " + NoThread(error.code()).what());
    }
    work();
  }
  std::printf("%" PRIu64 " seeds, %" PRIu64 " failures, %.1f s simulated, %" PRIu64
              " frames, %" PRIu64 " faults; %" PRIu64 " repeats, %" PRIu64
              " RC and RD again and %" PRIu64 " RS among %" PRIu64
              " frames of runs without faults\n",
              totals.runs, totals.failures,
              static_cast<double>(totals.simulated) / static_cast<double>(kSecond), totals.frames,
              totals.faults, totals.repeats, totals.calls, totals.questions, totals.intact_frames);
  if (campaign.nodes > 1)
    std::printf("%" PRIu64 " frames were handed from one Node to another\n", totals.handed_over);
  return totals.failures;
}

int list_profiles() {
  for (const auto& profile : profiles()) std::printf("%-14s %s\n", profile.name, profile.text);
  return 0;
}

int compare_incast(unsigned senders) {
  std::printf("%u senders of 1 MiB, 100 Gbit/s, 2 us per hop, 256 KiB of switch buffer\n", senders);
  std::printf("%-12s %14s %14s %14s\n", "pacing", "switch drops", "of line rate", "worst finish");
  bool passed = true;
  for (const auto limit : {incast_limit(), std::uint64_t{0}}) {
    const auto result = play_incast(senders, limit);
    passed = passed && result.passed;
    if (!result.passed) {
      std::printf("%-12s %14" PRIu64 "  did not complete\n", limit != 0 ? "yes" : "no",
                  result.drops);
      continue;
    }
    std::printf("%-12s %14" PRIu64 " %13.1f%% %13.2fx\n", limit != 0 ? "yes" : "no", result.drops,
                100 * result.line_rate, result.worst_finish);
  }
  return passed ? 0 : 1;
}

int compare_overhead(std::uint64_t seed) {
  std::printf("one write of %" PRIu64 " MiB, 10 Gbit/s, 2 us per hop, STUs of 8 KiB\n",
              kLossyLength >> 20);
  std::printf("%-34s %14s %12s %16s\n", "link", "bytes sent", "overhead", "goodput");
  struct Line {
    const char* name;
    Faults faults;
  };
  std::uint64_t clean = 0;
  bool passed = true;
  for (const auto& [name, faults] : {Line{"clean", {}}, Line{"1% lost", kOnePercent},
                                     Line{"10% lost, 10% reordered, 5% twice", kTenTenFive}}) {
    const auto result = play_lossy(faults, seed);
    if (clean == 0) clean = result.bytes;
    passed = passed && result.passed;
    if (!result.passed) {
      std::printf("%-34s did not complete\n", name);
      continue;
    }
    const auto more = static_cast<double>(result.bytes) / static_cast<double>(clean) - 1;
    std::printf("%-34s %14" PRIu64 " %11.1f%% %9.3f Gbit/s\n", name, result.bytes, 100 * more,
                result.goodput / 1e9);
  }
  return passed ? 0 : 1;
}

int soak(unsigned hours, std::uint64_t seed) {
  const auto result = play_soak(Time{hours} * 3'600 * kSecond, seed);
  for (const auto& failure : result.failures) std::printf("FAILED: %s\n", failure.c_str());
  std::printf("%" PRIu64 " sessions, %.1f h simulated, %" PRIu64
              " frames; heap between sessions at most %zu bytes early, %zu at the end\n",
              result.sessions,
              static_cast<double>(result.simulated) / static_cast<double>(3'600 * kSecond),
              result.frames, result.early, result.late);
  return result.failures.empty() ? 0 : 1;
}

int play_one(const Options& options, const Profile& profile) {
  if (const auto hosts = hosts_of(profile, *options.seed); options.pcapng_host > hosts) {
    cli::say("stp-sim", "--pcapng-host " + std::to_string(options.pcapng_host) +
                            ": this run has no such host: write 1 to " + std::to_string(hosts));
    return kBadUsage;
  }
  Watch watch;
  if (options.verbose) watch.text = stdout;
  if (!options.pcapng.empty() && !(watch.file = PcapngFile::create(options.pcapng))) {
    cli::say("stp-sim", "cannot write " + options.pcapng + ": " + std::strerror(errno));
    return 1;
  }
  if (options.pcapng_host != 0)
    watch.station = MacAddr::from_u64(0x020000000000 + options.pcapng_host);
  set_current_run(profile, *options.seed, options.nodes);
  const auto result = simulate(profile, *options.seed, std::move(watch), options.nodes);
  for (const auto& failure : result.failures) std::printf("FAILED: %s\n", failure.c_str());
  std::printf("profile %s seed %" PRIu64 ": %s, %.6f s simulated, %" PRIu64 " frames, %" PRIu64
              " faults, %" PRIu64 " bytes delivered, trace %016" PRIx64 "\n",
              profile.name, *options.seed, result.failures.empty() ? "passed" : "FAILED",
              static_cast<double>(result.simulated) / static_cast<double>(kSecond), result.frames,
              result.faults, result.delivered, result.hash);
  if (result.file_error != 0)
    cli::say("stp-sim",
             "cannot write " + options.pcapng + ": " + std::strerror(-result.file_error));
  return result.failures.empty() && result.file_error == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.list) return list_profiles();
  if (options.incast != 0) return compare_incast(options.incast);
  if (options.soak != 0) return soak(options.soak, options.seed.value_or(1));
  if (options.overhead) return compare_overhead(options.seed.value_or(1));
  const auto* const profile = find_profile(options.profile);
  if (profile == nullptr && options.profile != "all") {
    cli::say("stp-sim", "no profile " + options.profile + "; --list names them");
    return kBadUsage;
  }
  name_run_on_crash();
  if (options.seed) return play_one(options, profile ? *profile : profile_of(*options.seed));
  return play({options.first_seed, options.last_seed, profile, options.jobs, options.nodes}) == 0
             ? 0
             : 1;
}

}  // namespace
}  // namespace stp::sim

int main(int argc, char** argv) {
  stp::os::hold_standard_streams();
  int exit_status = 0;
  const auto options = stp::sim::parse_options(argc, argv, exit_status);
  if (!options) return stp::os::status_with_output("stp-sim", exit_status, 1);
  return stp::os::status_with_output("stp-sim", stp::sim::run(*options), 1);
}
