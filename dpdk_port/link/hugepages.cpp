// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/hugepages.h"

#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace stp::port {
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

}  // namespace stp::port
