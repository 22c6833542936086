// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/memory_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "libst/service/process_limits.h"
#include "libst/service/shared_memory.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace stp::service {
namespace {

struct sigaction before {};  // the action for SIGBUS that was installed before ours

UniqueFd make_watcher() {
  UniqueFd made(
      static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  uffdio_api wanted{};
  wanted.api = UFFD_API;
  wanted.features = UFFD_FEATURE_SIGBUS;
  if (!made || ::ioctl(made.get(), UFFDIO_API, &wanted) != 0) return {};
  return made;
}

void* zeros(std::uintptr_t begin, std::size_t size) {
  return ::mmap(reinterpret_cast<void*>(begin), size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

}  // namespace

MemoryGuard& MemoryGuard::instance() {
  static auto* const guard = new MemoryGuard;
  return *guard;
}

std::size_t MemoryGuard::room(std::uint64_t mappings) {
  constexpr std::uint64_t kLeast = 1 << 17, kMost = 1 << 24;
  return static_cast<std::size_t>(std::clamp(mappings, kLeast, kMost));
}

MemoryGuard::MemoryGuard() : watcher_(make_watcher()), ranges_(room(most_mappings())) {
  static_cast<void>(page_size());  // initializes its static here, not in the signal handler
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &before);
}

int MemoryGuard::watch(MutableBytes mapped) const {
  uffdio_register range{};
  range.range = {.start = reinterpret_cast<std::uintptr_t>(mapped.data()), .len = mapped.size()};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  return ::ioctl(watcher_.get(), UFFDIO_REGISTER, &range) == 0 ? 0 : -errno;
}

int MemoryGuard::guard(MutableBytes mapped, const std::shared_ptr<Torn>& torn) {
  return ranges_.add(mapped, torn.get());
}

void MemoryGuard::forget(MutableBytes mapped) {
  ranges_.remove(mapped);
}

// ---- the signal handler: async-signal-safe functions only

// Replaces one page, so that no fault takes long. That splits a mapping; if the process may not
// have one more, replaces the whole range, which needs no more.
bool MemoryGuard::mend(std::uintptr_t at) {
  GuardedRanges::Range range;
  if (!ranges_.find(at, range)) return false;
  if (range.torn != nullptr) range.torn->store(true);
  tears_.fetch_add(1);
  const auto page = at / page_size() * page_size();
  return zeros(page, page_size()) != MAP_FAILED ||
         zeros(range.begin, range.end - range.begin) != MAP_FAILED;
}

void MemoryGuard::on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto error = errno;
  if (instance().mend(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    errno = error;
    return;
  }
  // Not guarded memory: the previous handler decides. Without one, its action is restored, and the
  // fault happens again and ends the process.
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  ::sigaction(SIGBUS, &before, nullptr);
}

// ---- Guarded

int Guarded::begin(MutableBytes mapped, std::shared_ptr<Torn> torn) {
  torn_ = std::move(torn);
  const auto error = MemoryGuard::instance().guard(mapped, torn_);
  if (error == 0) mapped_ = mapped;
  return error;
}

void Guarded::reset() {
  if (!mapped_.empty()) MemoryGuard::instance().forget(std::exchange(mapped_, {}));
}

}  // namespace stp::service
