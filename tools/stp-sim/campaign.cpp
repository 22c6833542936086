// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stp-sim/campaign.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

namespace stp::sim {
namespace {

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

void report(const Profile& profile, std::uint64_t seed, unsigned nodes, const Result& result) {
  std::printf("FAILED profile %s seed %" PRIu64 "\n", profile.name, seed);
  for (const auto& failure : result.failures) std::printf("  %s\n", failure.c_str());
  std::printf("  replay: %s\n", replay_command(profile, seed, nodes).c_str());
  std::fflush(stdout);
}

}  // namespace

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

std::string replay_command(const Profile& profile, std::uint64_t seed, unsigned nodes) {
  return "stp-sim --seed " + std::to_string(seed) + " --profile " + profile.name +
         (nodes == 1 ? "" : " --nodes " + std::to_string(nodes)) + " --verbose";
}

void name_run_on_crash() {
  for (const auto signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, on_crash);
}

void set_current_run(const Profile& profile, std::uint64_t seed, unsigned nodes) {
  std::snprintf(current_run.data(), current_run.size(), "%s",
                replay_command(profile, seed, nodes).c_str());
}

std::uint64_t play(const Campaign& campaign) {
  std::atomic<std::uint64_t> next{campaign.first_seed};
  std::mutex mutex;
  Totals totals;
  const auto work = [&] {
    for (;;) {
      const auto seed = next.fetch_add(1);
      if (seed > campaign.last_seed) return;
      const auto& profile = campaign.profile != nullptr ? *campaign.profile : profile_of(seed);
      set_current_run(profile, seed, campaign.nodes);
      const auto result = simulate(profile, seed, {}, campaign.nodes);
      std::scoped_lock const lock(mutex);
      totals.add(result);
      if (!result.failures.empty()) report(profile, seed, campaign.nodes, result);
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < campaign.jobs; ++i) workers.emplace_back(work);
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

}  // namespace stp::sim
