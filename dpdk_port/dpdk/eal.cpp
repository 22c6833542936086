// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/eal.h"

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "dpdk_port/dpdk/telemetry.h"
#include "dpdk_port/link/cpus.h"
#include "dpdk_port/link/device_plan.h"
#include "dpdk_port/link/start_thread.h"
#include "dpdk_port/port.h"
#include "stp/base/mutex.h"

namespace stp::port {
namespace {

// Replacements for DPDK messages that do not help.
struct Translation {
  std::string_view dpdk;
  const char* ours;
};
constexpr std::array kTranslations{
    Translation{"Device or resource busy",
                "another program has the NIC: fuser -v /dev/vfio/* names it"},
    Translation{"VFIO group is not viable",
                "the kernel has other devices of its IOMMU group, which are listed in "
                "/sys/bus/pci/devices/ADDRESS/iommu_group/devices: bind them to vfio-pci, too"},
    Translation{"failed to parse device",
                "no driver of DPDK has a name that it begins with: see the name (net_ring0, "
                "net_tap0), and whether the driver is installed (librte-net-...)"},
    Translation{"DMA remapping", "VFIO may not pin its memory: raise LimitMEMLOCK= (ulimit -l)"},
};

}  // namespace

std::string failure(const std::string& what, int result) {
  const std::string said = take_dpdk_message();
  for (const Translation& each : kTranslations) {
    if (said.find(each.dpdk) != std::string::npos) return what + ": " + each.ours;
  }
  return what + ": " + (said.empty() ? rte_strerror(-result) : said);
}

namespace {

HugepageChoice hugepages_here() {
  return choose_hugepages("/sys/kernel/mm/hugepages", try_hugepage);
}

// ---- what DPDK says. Libraries do not print, so its log ends here instead of on stderr.

class LogHead {
 public:
  void write(const char* text, std::size_t length) {
    const Lock lock(mutex_);
    for (const char c : std::string(text, length)) {
      if (c != '\n') {
        line_ += c;
      } else if (const std::string line = std::exchange(line_, ""); first_.empty()) {
        first_ = line;
      }
      if (line_.size() > kMaxLine) line_.clear();
    }
  }
  std::string take() {
    const Lock lock(mutex_);
    return std::exchange(first_, "");
  }

 private:
  static constexpr std::size_t kMaxLine = 1024;
  Mutex mutex_;
  std::string line_ STP_GUARDED_BY(mutex_);
  std::string first_ STP_GUARDED_BY(mutex_);
};

LogHead& log_head() {
  // Never destroyed: DPDK's threads may log until the process ends.
  static LogHead& head = *new LogHead;
  return head;
}

void divert_log() {
  cookie_io_functions_t functions{};
  functions.write = [](void*, const char* text, std::size_t length) {
    log_head().write(text, length);
    return static_cast<ssize_t>(length);
  };
  std::FILE* const stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  setvbuf(stream, nullptr, _IOLBF, 0);
  rte_openlog_stream(stream);
}

// ---- arguments

std::atomic<bool>& telemetry_wanted() {
  static std::atomic<bool> wanted{false};
  return wanted;
}

// EAL goes on without that directory, but has its telemetry socket in /tmp then, at a name that any
// process may have: it does not start if one has it. The directory is made here; EAL takes it over.
bool has_place_for_telemetry() {
  return make_runtime_directory(parent_of_runtime_directories(), ::getpid());
}

// Nothing that DPDK might refuse: it prints its usage on stdout then.
std::vector<std::string> arguments(const std::string& pci_address, unsigned megabytes,
                                   const std::string& lcores, bool hugepages) {
  std::vector<std::string> list{"stp", "--log-level=error", "--lcores=" + lcores,
                                "--file-prefix=" + file_prefix_of(getpid())};
  if (!telemetry_wanted() || !has_place_for_telemetry()) list.push_back("--no-telemetry");
  if (hugepages) {
    list.insert(list.end(), {"--in-memory", "--single-file-segments"});
  } else {
    list.insert(list.end(), {"--no-huge", "--no-shconf", "-m", std::to_string(megabytes)});
  }
  if (pci_address.empty()) {
    list.insert(list.end(), {"--no-pci", "--iova-mode=va"});
  } else {
    list.insert(list.end(), {"-a", pci_address});
  }
  return list;
}

// ---- start

struct Eal {
  Mutex mutex{LockRank::kEal};
  bool tried STP_GUARDED_BY(mutex) = false;
  bool has_pci STP_GUARDED_BY(mutex) = false;
  // Also of the thread that starts EAL, for which start_eal() waits.
  std::string error, notice;
};

Eal& this_eal() {
  static Eal eal;
  return eal;
}

// EAL makes this directory for files shared with other processes: we share the telemetry socket at
// most.
void remove_runtime_directory() {
  rmdir(rte_eal_get_runtime_dir());
}

void initialise(Eal& eal, const std::string& pci_address, unsigned megabytes) {
  divert_log();
  // Runs after DPDK's own handler, which removes its socket from there.
  if (telemetry_wanted()) std::atexit(remove_runtime_directory);
  const HugepageChoice hugepages = hugepages_here();
  eal.notice = hugepages.trouble;
  const auto usable = usable_cpus();
  const Lcores lcores = make_lcores(usable, dpdk_knows_cpu);
  std::vector<std::string> list = arguments(pci_address, megabytes, lcores.list, hugepages.use);
  std::vector<char*> argv;
  argv.reserve(list.size());
  for (std::string& argument : list) argv.push_back(argument.data());
  const int result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  // A program that uses DPDK itself has already started EAL: its device buses are available to us
  // too.
  if (result < 0 && rte_errno != EALREADY) {
    const std::string said = take_dpdk_message();
    eal.error = "DPDK does not start: " + (said.empty() ? rte_strerror(rte_errno) : said);
    if (lcores.foreign) eal.error += "; " + why_foreign(usable);
    return;
  }
  if (result < 0) return;
  if (!telemetry_wanted()) remove_runtime_directory();
  remove_left_behind(std::filesystem::path(rte_eal_get_runtime_dir()).parent_path());
}

}  // namespace

std::string parent_of_runtime_directories() {
  constexpr char kName[] = "/dpdk";
  if (const char* const given = std::getenv("RUNTIME_DIRECTORY"); given != nullptr)
    return std::string(given) + kName;
  const char* const of_user = ::getuid() == 0 ? "/var/run" : std::getenv("XDG_RUNTIME_DIR");
  return std::string(of_user != nullptr ? of_user : "/tmp") + kName;
}

bool start_eal(const std::string& pci_address, unsigned megabytes, std::string& error) {
  Eal& eal = this_eal();
  const Lock lock(eal.mutex);
  if (!eal.tried) {
    // EAL binds the thread that starts it to its lcore, so it gets its own thread. Where there is
    // none, EAL has not begun.
    start_thread(initialise, std::ref(eal), std::cref(pci_address), megabytes).join();
    eal.tried = true;
    eal.has_pci = !pci_address.empty();
  }
  error = eal.error;
  return error.empty();
}

bool may_open_nics(std::string& error) {
  Eal& eal = this_eal();
  const Lock lock(eal.mutex);
  if (!eal.tried || eal.has_pci) return true;
  error = "this process began with a link of another kind: open the pci: link first";
  return false;
}

bool has_hugepages() {
  Eal& eal = this_eal();
  const Lock lock(eal.mutex);
  return eal.tried ? rte_eal_has_hugepages() != 0 : hugepages_here().use;
}

std::string take_notice() {
  Eal& eal = this_eal();
  const Lock lock(eal.mutex);
  return std::exchange(eal.notice, "");
}

void run_on_interrupt_thread(const std::function<void()>& work) {
  struct Job {
    std::function<void()> work;
    std::promise<void> done;
  };
  auto job = std::unique_ptr<Job>(new Job{work, {}});
  std::future<void> done = job->done.get_future();
  const auto run = [](void* it) {
    const std::unique_ptr<Job> own(static_cast<Job*>(it));
    own->work();
    own->done.set_value();
  };
  // Alarms run on the interrupt thread.
  if (rte_thread_is_intr() == 0 && rte_eal_alarm_set(1, run, job.get()) == 0) {
    job.release();  // NOLINT(bugprone-unused-return-value): the alarm owns it
    done.wait();
  } else {
    work();
  }
}

void enable_telemetry() {
  telemetry_wanted() = true;
}

bool telemetry_enabled() {
  return telemetry_wanted();
}

bool eal_runs() {
  Eal& eal = this_eal();
  const Lock lock(eal.mutex);
  return eal.tried && eal.error.empty();
}

std::string take_dpdk_message() {
  return log_head().take();
}

}  // namespace stp::port

#ifdef __SANITIZE_THREAD__
// DPDK's libraries are not built for ThreadSanitizer, which sees the memory that they pass between
// threads but not their locks.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "race:librte_\n";
}
#endif
