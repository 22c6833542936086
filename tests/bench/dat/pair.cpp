// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/dat/pair.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/bench/dat/dat_end.h"
#include "tests/bench/dat/managed_end.h"

namespace stp::bench {
namespace {

constexpr int kServerCpu = 0, kClientCpu = 1;
// Longer than all steps of a side together; each step has its own limit.
constexpr int kRunLimitMs = 120'000;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void serve(auto& end, const Plan& plan, auto ready) {
  end.listen();
  ready();
  end.patience.begin("waiting for the client");
  end.accept();
  end.patience.begin("answering messages");
  for (int i = 0; i < plan.rounds; ++i) {
    end.receive();
    end.send();
  }
  end.patience.begin("being written to");
  end.receive();
  end.send();
  end.await_end();
}

double round_trip_us(auto& end, int rounds) {
  end.patience.begin("sending messages there and back");
  const auto begin = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    end.send();
    end.receive();
  }
  return seconds_since(begin) / rounds * 1e6;
}

double write_bandwidth(auto& end, int writes) {
  end.patience.begin("writing");
  const auto begin = Clock::now();
  for (int i = 0; i < writes; ++i) {
    if (i >= kWindow) end.await_write();
    end.write();
  }
  for (int i = 0; i < std::min(kWindow, writes); ++i) end.await_write();
  return writes * double{kWriteSize} / seconds_since(begin);
}

Figures run_client(auto& end, const Plan& plan) {
  end.patience.begin("connecting");
  end.connect("10.9.0.2");
  const auto warm_up = plan.rounds / 10;
  round_trip_us(end, warm_up);
  Figures figures;
  figures.round_trip_us = round_trip_us(end, plan.rounds - warm_up);
  figures.bytes_per_second = write_bandwidth(end, plan.writes);
  end.patience.begin("parting");
  end.send();
  end.receive();
  return figures;
}

// What a side reports to its parent.
struct Report {
  Figures figures;
  char problem[256] = "";
};

void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);  // with one core: both share it
}

// A side in its own process, because a process has only one EAL. Ends with its parent.
class Side {
 public:
  template <typename Work>
  Side(const char* name, int cpu, Work work) : name_(name) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no process");
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      stay_on(cpu);
      run(ends[1], work);
    }
    ::close(ends[1]);
    reports_ = ends[0];
  }
  ~Side() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(reports_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] int reports() const { return reports_; }
  // The side's next report, if there is one.
  [[nodiscard]] Figures figures() const {
    Report report;
    if (::read(reports_, &report, sizeof report) != sizeof report)
      throw std::runtime_error(std::string(name_) + ": crashed");
    if (report.problem[0] != '\0')
      throw std::runtime_error(std::string(name_) + ": " + report.problem);
    return report.figures;
  }

 private:
  // `work` is given a way to report before it ends.
  template <typename Work>
  [[noreturn]] static void run(int to, Work work) {
    const auto tell = [to](const Report& report) {
      if (::write(to, &report, sizeof report) != sizeof report) ::_exit(EXIT_FAILURE);
    };
    Report report;
    try {
      work(tell);
    } catch (const std::exception& problem) {
      std::snprintf(report.problem, sizeof report.problem, "%s", problem.what());
      tell(report);
    }
    ::_exit(EXIT_SUCCESS);
  }

  const char* name_;
  pid_t child_ = -1;
  int reports_ = -1;
};

// Returns the first report of any of `sides`.
Figures await(std::initializer_list<const Side*> sides) {
  std::vector<pollfd> waiting;
  for (const auto* side : sides) waiting.push_back({side->reports(), POLLIN, 0});
  if (::poll(waiting.data(), waiting.size(), kRunLimitMs) <= 0)
    throw std::runtime_error("no figures in two minutes");
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [](const auto& side) { return side.revents != 0; });
  return sides.begin()[found - waiting.begin()]->figures();
}

// A directory for the socket and dat.conf of one measurement. A killed process leaves its socket
// there.
class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder for a socket");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "dat-bench-XXXXXX";
};

template <typename MakeEnd>
Figures measure_pair(MakeEnd make_end, const Plan& plan, const std::string& folder) {
  const auto memif = "memif:" + folder + "/memif.sock,mtu=9000,";
  const Side server("server", kServerCpu, [&](auto tell) {
    auto end = make_end(memif + "role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24");
    serve(*end, plan, [&] { tell(Report{}); });
  });
  static_cast<void>(await({&server}));
  const Side client("client", kClientCpu, [&](auto tell) {
    auto end = make_end(memif + "role=client,mac=02:00:00:00:09:01,address=10.9.0.1/24");
    tell(Report{run_client(*end, plan), ""});
  });
  return await({&client, &server});
}

}  // namespace

Figures measure(Api api, const Plan& plan) {
  const Folder folder;
  const auto& path = folder.path();
  if (api == Api::kManaged)
    return measure_pair(
        [&](const std::string& link) { return std::make_unique<ManagedEnd>(link, plan.sleep); },
        plan, path);
  return measure_pair(
      [&](const std::string& link) { return std::make_unique<DatEnd>(path, link, plan.sleep); },
      plan, path);
}

}  // namespace stp::bench
