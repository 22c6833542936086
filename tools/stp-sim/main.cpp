// SPDX-License-Identifier: BSD-3-Clause
// Plays one run of the simulation again, or many runs.
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "libst/os/standard_streams.h"
#include "tools/sim/measures.h"
#include "tools/stp-sim/campaign.h"
#include "tools/stp-sim/options.h"

namespace stp::sim {
namespace {

constexpr int kBadUsage = 2;

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
  Watch watch;
  if (options.verbose) watch.text = stdout;
  if (!options.pcapng.empty() && !(watch.file = PcapngFile::create(options.pcapng))) {
    std::fprintf(stderr, "stp-sim: cannot write %s: %s\n", options.pcapng.c_str(),
                 std::strerror(errno));
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
    std::fprintf(stderr, "stp-sim: cannot write %s: %s\n", options.pcapng.c_str(),
                 std::strerror(-result.file_error));
  return result.failures.empty() && result.file_error == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.list) return list_profiles();
  if (options.incast != 0) return compare_incast(options.incast);
  if (options.soak != 0) return soak(options.soak, options.seed.value_or(1));
  if (options.overhead) return compare_overhead(options.seed.value_or(1));
  const auto* const profile = find_profile(options.profile);
  if (profile == nullptr && options.profile != "all") {
    std::fprintf(stderr, "stp-sim: no profile %s; --list names them\n", options.profile.c_str());
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
  stp::service::hold_standard_streams();
  int exit_status = 0;
  const auto options = stp::sim::parse_options(argc, argv, exit_status);
  if (!options) return stp::service::status_with_output("stp-sim", exit_status, 1);
  return stp::service::status_with_output("stp-sim", stp::sim::run(*options), 1);
}
