// SPDX-License-Identifier: BSD-3-Clause
#include "tests/hostile/processor_waits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace stp::hostile {
namespace {

using Duration = ProcessorWaits::Duration;

os::UniqueFd counts_of(pid_t thread) {
  const auto path = "/proc/" + std::to_string(thread) + "/schedstat";
  return os::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The file holds the time on a processor, the time that it waited for one, and how often it ran.
Duration wait_in(const os::UniqueFd& file) {
  std::array<char, 128> text{};
  if (!file || ::pread(file.get(), text.data(), text.size() - 1, 0) <= 0) return {};
  char* after = nullptr;
  std::strtoull(text.data(), &after, 10);
  return std::chrono::nanoseconds(std::strtoull(after, nullptr, 10));
}

}  // namespace

ProcessorWaits::ProcessorWaits(const Servers& servers)
    : servers_(servers), own_(counts_of(::gettid())) {
  for (const auto thread : servers_.threads) files_.push_back(counts_of(thread));
}

void ProcessorWaits::find_workers() {
  const auto& known = servers_.threads;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/" + std::to_string(servers_.process) + "/task",
                                              error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const auto thread = static_cast<pid_t>(std::stoi(at->path().filename()));
    if (std::find(known.begin(), known.end(), thread) == known.end() && !workers_.contains(thread))
      workers_.emplace(thread, counts_of(thread));
  }
}

ProcessorWaits::Waits ProcessorWaits::now(bool workers) {
  Waits waits;
  waits.own = own();
  for (const auto& file : files_) waits.servers += wait_in(file);
  if (!workers || servers_.process == 0) return waits;
  find_workers();
  for (const auto& [thread, file] : workers_) waits.workers[thread] = wait_in(file);
  return waits;
}

// A worker that was not there before has waited in this time only.
ProcessorWaits::Duration ProcessorWaits::since(const Waits& before) {
  const auto waits = now(!before.workers.empty());
  Duration longest{};
  for (const auto& [thread, wait] : waits.workers) {
    const auto then = before.workers.find(thread);
    longest = std::max(longest, wait - (then == before.workers.end() ? Duration{} : then->second));
  }
  return waits.own - before.own + waits.servers - before.servers + longest;
}

ProcessorWaits::Duration ProcessorWaits::own() const {
  return wait_in(own_);
}

}  // namespace stp::hostile
