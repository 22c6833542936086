// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/eal_settings.h"

#include <linux/memfd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "dpdk_port/link/owners.h"

namespace stp::port {

Lcores make_lcores(const std::vector<unsigned>& usable,
                   const std::function<bool(unsigned)>& knows) {
  std::string list;
  for (std::size_t i = 0; i < usable.size() && usable[i] < kDpdkCpus; ++i) {
    if (!knows(usable[i])) continue;
    const unsigned first = usable[i];
    unsigned last = first;
    while (i + 1 < usable.size() && usable[i + 1] == last + 1 && last + 1 < kDpdkCpus &&
           knows(last + 1)) {
      ++last;
      ++i;
    }
    if (!list.empty()) list += ',';
    list += std::to_string(first);
    if (last != first) list += '-' + std::to_string(last);
  }
  if (!list.empty()) return {"0@(" + list + ")", false};
  unsigned other = 0;  // there may be no CPU 0
  while (other < kDpdkCpus && !knows(other)) ++other;
  return {"0@" + std::to_string(other % kDpdkCpus), true};
}

std::string why_foreign(const std::vector<unsigned>& usable) {
  std::string text = "it knows none of the CPUs that this process may use";
  if (usable.empty()) return text;
  text += " (the first is " + std::to_string(usable.front()) + "): ";
  if (usable.front() >= kDpdkCpus) return text + "permit one below " + std::to_string(kDpdkCpus);
  return text + "they are not in /sys/devices/system/cpu: permit one that is there";
}

bool dpdk_knows_cpu(unsigned cpu) {
  const auto file = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_id";
  return ::access(file.c_str(), F_OK) == 0;
}

namespace {

// They are allocated on demand; fewer free bytes than this are not worth using.
constexpr std::uint64_t kWorthwhile = std::uint64_t{128} << 20;

std::uint64_t number_at(const std::filesystem::path& path) {
  std::uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

}  // namespace

HugepageChoice choose_hugepages(const std::string& root,
                                const std::function<int(std::uint64_t bytes)>& trial) {
  std::uint64_t free = 0;
  std::string trouble;
  std::error_code failure;
  for (const auto& size : std::filesystem::directory_iterator(root, failure)) {
    const std::string name = size.path().filename();  // hugepages-2048kB
    const std::uint64_t page = std::strtoull(name.c_str() + name.find('-') + 1, nullptr, 10) << 10;
    const std::uint64_t count = number_at(size.path() / "free_hugepages");
    const std::uint64_t reserved = number_at(size.path() / "resv_hugepages");
    if (page == 0 || count <= reserved) continue;
    free += page * (count - reserved);
    if (const int error = trial(page); error != 0) {
      trouble =
          "hugepages of " + std::to_string(page >> 10) +
          " KiB are free, but this process gets none (" + std::strerror(error) +
          "): usual pages are used; see the limits of its cgroup (hugetlb.max), LimitMEMLOCK= "
          "and LimitFSIZE=";
    }
  }
  if (free < kWorthwhile) return {};
  return {trouble.empty(), trouble};
}

int try_hugepage(std::uint64_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) return EFBIG;
  const auto size_flag = static_cast<unsigned>(std::countr_zero(bytes)) << MFD_HUGE_SHIFT;
  const int fd = ::memfd_create("stp-hugepage", MFD_CLOEXEC | MFD_HUGETLB | size_flag);
  if (fd < 0) return errno;
  int error = 0;
  void* page = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    error = errno;
  } else {
    page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (page == MAP_FAILED) error = errno;
  }
  ::close(fd);
  if (page == MAP_FAILED) return error;
  // Where a cgroup has no more, the mapping is there without its page: touching it would end us.
  unsigned char present = 0;
  if (::mincore(page, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), &present) != 0) {
    error = errno;
  } else if ((present & 1) == 0) {
    error = ENOMEM;
  }
  ::munmap(page, bytes);
  return error;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "stp-";

// 0: not one of ours.
pid_t owner_of(const fs::path& directory) {
  const auto name = directory.filename().string();
  if (!name.starts_with(kPrefix)) return 0;
  pid_t pid = 0;
  const auto* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, pid);
  return error == std::errc() && at == end && pid > 0 ? pid : 0;
}

// If that cannot be found out, the directory is left alone.
bool is_served(const fs::path& socket_path) {
  const auto error = probe_socket(socket_path.string());
  return error != ECONNREFUSED && error != ENOENT;
}

// DPDK makes the directory some moments before the socket in it.
bool is_young(const fs::path& directory) {
  std::error_code error;
  const auto changed = fs::last_write_time(directory, error);
  return error || fs::file_time_type::clock::now() - changed < std::chrono::minutes(1);
}

// The pid alone is not enough: the process may be in another pid namespace.
bool is_left_behind(const fs::path& directory) {
  const auto pid = owner_of(directory);
  if (pid == 0 || ::kill(pid, 0) == 0 || errno != ESRCH || is_young(directory)) return false;
  return !is_served(directory / "dpdk_telemetry.v2");
}

}  // namespace

std::string file_prefix_of(pid_t pid) {
  return std::string(kPrefix) + std::to_string(pid);
}

void remove_left_behind(const fs::path& parent) {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (is_left_behind(entry.path())) left.push_back(entry.path());
  for (const auto& directory : left) fs::remove_all(directory, ignored);
}

}  // namespace stp::port
