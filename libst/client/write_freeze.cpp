// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/write_freeze.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "libst/os/unique_fd.h"
#include "libst/service/shared_memory.h"

// Older kernel headers lack these. They need Linux 5.11, 5.19 and 6.4.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

namespace stp::client {
namespace {

using service::UniqueFd;

// Handling page faults of the kernel takes a privilege. Without it, the descriptor handles faults
// of user code only.
UniqueFd open_one(std::uint64_t features) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  UniqueFd fd(static_cast<int>(::syscall(SYS_userfaultfd, kFlags)));
  if (!fd) fd.reset(static_cast<int>(::syscall(SYS_userfaultfd, kFlags | UFFD_USER_MODE_ONLY)));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (fd && ::ioctl(fd.get(), UFFDIO_API, &api) != 0) fd.reset();
  return fd;
}

UniqueFd open_best() {
  constexpr std::uint64_t kWanted[] = {
      UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
          UFFD_FEATURE_WP_UNPOPULATED,
      UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
      UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  for (const auto features : kWanted)
    if (auto fd = open_one(features)) return fd;
  return {};
}

// One descriptor for the process: each freeze registers its pages and unregisters them in the end.
int userfault() {
  static const auto* const fd = new UniqueFd(open_best());  // never closed, as HandleTable
  return fd->get();
}

uffdio_range range_of(MutableBytes pages) {
  return {reinterpret_cast<std::uintptr_t>(pages.data()), pages.size()};
}

bool protect(MutableBytes pages, std::uint64_t mode) {
  uffdio_writeprotect what{};
  what.range = range_of(pages);
  what.mode = mode;
  int result = 0;
  do {
    result = ::ioctl(userfault(), UFFDIO_WRITEPROTECT, &what);
  } while (result != 0 && errno == EAGAIN);
  return result == 0;
}

bool freeze(MutableBytes pages) {
  if (userfault() < 0) return false;
  uffdio_register what{};
  what.range = range_of(pages);
  what.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(userfault(), UFFDIO_REGISTER, &what) != 0) return false;
  if (protect(pages, UFFDIO_WRITEPROTECT_MODE_WP)) return true;
  auto range = range_of(pages);
  ::ioctl(userfault(), UFFDIO_UNREGISTER, &range);
  return false;
}

// If the pages were replaced, their registration has gone with them; the threads that wait are
// woken in any case.
void thaw(MutableBytes pages) {
  auto range = range_of(pages);
  ::ioctl(userfault(), UFFDIO_UNREGISTER, &range);
  ::ioctl(userfault(), UFFDIO_WAKE, &range);
}

}  // namespace

WriteFreeze::WriteFreeze(MutableBytes pages) : pages_(pages) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &signals_);
  holds_ = freeze(pages);
}

WriteFreeze::~WriteFreeze() {
  if (holds_) thaw(pages_);
  ::pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

bool holds_this_thread(MutableBytes pages) {
  const auto page = service::page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.data());
  const auto end = begin + pages.size();
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto last_error = reinterpret_cast<std::uintptr_t>(&errno);
  return (frame + page > begin && frame < end + page) || (last_error >= begin && last_error < end);
}

}  // namespace stp::client
