// SPDX-License-Identifier: BSD-3-Clause
// What DAT costs above the managed API: two processes on memif, both APIs in one run, in turns. The
// best of each counts, for the machine has other things to do. Ends with 1 beyond the goals.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/bench/dat_end.h"
#include "tests/bench/managed_end.h"

namespace stp::bench {
namespace {

constexpr int kTurns = 3, kRounds = 100'000, kWrites = 4'000, kWindow = 8;
constexpr double kMostLatency = 1.5, kLeastBandwidth = 0.95;

struct Figures {
  double round_trip_us = 0, gigabytes_per_second = 0;
};

double seconds_of(auto&& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <typename End>
void serve(const std::string& link) {
  End end(link);
  end.accept();
  for (int i = 0; i < kRounds; ++i) {
    end.receive();
    end.send();
  }
  end.receive();  // the writes are done
  end.send();
  end.receive();
}

template <typename End>
Figures measure(const std::string& link) {
  End end(link);
  end.connect("10.9.0.2");
  Figures figures;
  auto const exchanging = seconds_of([&] {
    for (int i = 0; i < kRounds; ++i) {
      end.send();
      end.receive();
    }
  });
  auto const writing = seconds_of([&] {
    for (int i = 0; i < kWrites; ++i) {
      if (i >= kWindow) end.await_write();
      end.write();
    }
    for (int i = 0; i < kWindow; ++i) end.await_write();
  });
  end.send();
  end.receive();
  end.send();
  figures.round_trip_us = exchanging / kRounds * 1e6;
  figures.gigabytes_per_second = double{kWrites} * kWriteSize / writing / 1e9;
  return figures;
}

// In a process of its own, for a process has one EAL.
template <typename Work>
pid_t begin(Work work) {
  auto const child = ::fork();
  if (child != 0) return child;
  try {
    work();
    std::fflush(nullptr);
    ::_exit(EXIT_SUCCESS);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "dat-bench: %s\n", problem.what());
    ::_exit(EXIT_FAILURE);
  }
}

void await(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("a side has failed");
}

template <typename End>
Figures run(const std::string& folder) {
  auto const socket = "memif:" + folder + "/memif.sock,mtu=9000,";
  int results[2];
  if (::pipe(results) != 0) throw std::runtime_error("no pipe");
  auto const server =
      begin([&] { serve<End>(socket + "role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24"); });
  auto const client = begin([&] {
    auto const figures =
        measure<End>(socket + "role=client,mac=02:00:00:00:09:01,address=10.9.0.1/24");
    if (::write(results[1], &figures, sizeof figures) != sizeof figures) ::_exit(EXIT_FAILURE);
  });
  await(client);
  await(server);
  Figures figures;
  auto const got = ::read(results[0], &figures, sizeof figures);
  for (auto const end : results) ::close(end);
  if (got != sizeof figures) throw std::runtime_error("no figures");
  return figures;
}

void keep_best(Figures& best, const Figures& now) {
  if (best.round_trip_us == 0 || now.round_trip_us < best.round_trip_us)
    best.round_trip_us = now.round_trip_us;
  best.gigabytes_per_second = std::max(best.gigabytes_per_second, now.gigabytes_per_second);
}

void print(const char* name, const Figures& figures) {
  std::printf("%-8s %8.2f us %8.2f GB/s\n", name, figures.round_trip_us,
              figures.gigabytes_per_second);
}

int compare(const std::string& folder) {
  Figures managed, dat;
  for (int i = 0; i < kTurns; ++i) {
    keep_best(managed, run<ManagedEnd>(folder));
    keep_best(dat, run<DatEnd>(folder));
  }
  auto const latency = dat.round_trip_us / managed.round_trip_us;
  auto const bandwidth = dat.gigabytes_per_second / managed.gigabytes_per_second;
  std::printf("         64 B there and back, writes of 1 MiB\n");
  print("managed", managed);
  print("DAT", dat);
  std::printf("ratio    %8.2f    %8.2f      (goals: at most %.2f, at least %.2f)\n", latency,
              bandwidth, kMostLatency, kLeastBandwidth);
  return latency <= kMostLatency && bandwidth >= kLeastBandwidth ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace stp::bench

int main() {
  std::string folder = std::filesystem::temp_directory_path() / "dat-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return EXIT_FAILURE;
  int status = EXIT_FAILURE;
  try {
    status = stp::bench::compare(folder);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "dat-bench: %s\n", problem.what());
  }
  std::filesystem::remove_all(folder);
  return status;
}
