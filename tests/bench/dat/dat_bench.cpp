// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of DAT above the managed API: both in turn in one run, several times. Prints
// figures and does not judge them, because those of a busy machine say nothing.
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/command_line.h"
#include "tests/bench/dat/pair.h"

namespace stp::bench {
namespace {

constexpr const char* kUsage =
    R"(usage: dat-bench [--repeats N] [--rounds N] [--writes N] [--sleep] [--json]
Messages of 64 bytes there and back, then writes of 1 MiB, 8 at a time: by the managed API and by
DAT (uDAPL 1.2), in turn, each by two processes on memif, on CPU 0 and 1.
  --repeats N  of either [5]
  --rounds N   messages there and back [100000]
  --writes N   [2000]
  --sleep      wait in dat_evd_wait and stm_queue_wait instead of polling
  --json       all values, too
)";

struct Settings {
  Plan plan;
  int repeats = 5;
  bool json = false;
};

int number(const char* text) {
  const auto value = std::atoi(text);
  if (value < 1) throw std::invalid_argument(std::string(text) + " is no number from 1 on");
  return value;
}

Settings parse(int argc, char** argv) {
  constexpr option kOptions[] = {{"repeats", required_argument, nullptr, 'r'},
                                 {"rounds", required_argument, nullptr, 'm'},
                                 {"writes", required_argument, nullptr, 'w'},
                                 {"sleep", no_argument, nullptr, 's'},
                                 {"json", no_argument, nullptr, 'j'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {}};
  hold_to(kUsage, argc, argv);
  Settings settings;
  for (int found; (found = ::getopt_long(argc, argv, "h", kOptions, nullptr)) != -1;) {
    if (found == 'r') settings.repeats = number(optarg);
    if (found == 'm') settings.plan.rounds = number(optarg);
    if (found == 'w') settings.plan.writes = number(optarg);
    if (found == 's') settings.plan.sleep = true;
    if (found == 'j') settings.json = true;
    if (found == 'h' || found == '?') {
      std::fputs(kUsage, found == 'h' ? stdout : stderr);
      std::exit(found == 'h' ? EXIT_SUCCESS : 2);
    }
  }
  if (optind < argc) refuse(argv[0], std::string("no option: ") + argv[optind], kUsage);
  return settings;
}

struct Series {
  std::vector<double> round_trips, bandwidths;

  void add(const Figures& figures) {
    round_trips.push_back(figures.round_trip_us);
    bandwidths.push_back(figures.bytes_per_second);
  }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string json_list(const std::vector<double>& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

void print_json(const char* name, const Series& series) {
  std::printf("\"%s\":{\"round_trip_us\":%.4f,\"write_bytes_per_second\":%.0f,", name,
              median(series.round_trips), median(series.bandwidths));
  std::printf("\"round_trips_us\":%s,\"writes_bytes_per_second\":%s},",
              json_list(series.round_trips).c_str(), json_list(series.bandwidths).c_str());
}

void print_row(const char* name, const Series& series) {
  std::printf("%-8s %10.3f us %10.3f GB/s\n", name, median(series.round_trips),
              median(series.bandwidths) / 1e9);
}

void compare(const Settings& settings) {
  Series managed, dat;
  for (int i = 0; i < settings.repeats; ++i) {
    managed.add(measure(Api::kManaged, settings.plan));
    dat.add(measure(Api::kDat, settings.plan));
  }
  const auto latency = median(dat.round_trips) / median(managed.round_trips);
  const auto bandwidth = median(dat.bandwidths) / median(managed.bandwidths);
  if (settings.json) {
    std::printf("{");
    print_json("managed", managed);
    print_json("dat", dat);
    std::printf("\"ratio\":{\"round_trip\":%.4f,\"write\":%.4f}}\n", latency, bandwidth);
    return;
  }
  std::printf("medians of %d  64 B and back   writes of 1 MiB\n", settings.repeats);
  print_row("managed", managed);
  print_row("DAT", dat);
  std::printf("ratio    %10.3f    %10.3f\n", latency, bandwidth);
}

}  // namespace
}  // namespace stp::bench

int main(int argc, char** argv) {
  try {
    stp::bench::compare(stp::bench::parse(argc, argv));
    return EXIT_SUCCESS;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "dat-bench: %s\n", problem.what());
    return EXIT_FAILURE;
  }
}
