// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <limits>
#include <new>
#include <utility>

#include "libst/os/file_limit.h"
#include "libst/os/mapping_turn.h"
#include "stp/base/assert.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace stp::ipc {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

int check_shareable(int fd, std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();
  if (size == 0 || offset > kMaxSize || size > kMaxSize - offset || offset % page_size() != 0)
    return -EINVAL;
  struct stat status {};
  struct statfs filesystem {};
  const auto seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return -EINVAL;
  if (::fstatfs(fd, &filesystem) != 0 || filesystem.f_type != TMPFS_MAGIC) return -EINVAL;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return -EINVAL;
  return offset + size <= static_cast<std::uint64_t>(status.st_size) ? 0 : -EINVAL;
}

std::shared_ptr<SharedMemory> SharedMemory::offer(const char* name, std::size_t size) {
  auto made = lend(name, size);
  if (made != nullptr) made->offered_ = true;
  return made;
}

std::shared_ptr<SharedMemory> SharedMemory::lend(const char* name, std::size_t size) {
  os::UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return nullptr;
  return map(std::move(fd), 0, size);
}

std::shared_ptr<SharedMemory> SharedMemory::create_own(std::size_t size) {
  auto* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(os::UniqueFd(), static_cast<std::byte*>(at), size));
}

int SharedMemory::keep_pages() const {
  STP_ASSERT(fd_, "memory is kept before its descriptor is forgotten");
  // Fails if the other side has sealed first, or on Linux before 5.1: the seals tell.
  if (::fcntl(fd_.get(), F_ADD_SEALS, kSealFutureWrite | F_SEAL_SEAL) != 0)
    ::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SEAL);
  const auto seals = ::fcntl(fd_.get(), F_GET_SEALS);
  if (seals < 0) return -errno;
  if ((seals & kSealFutureWrite) == 0 && can_keep_pages()) return -EPERM;
  const auto hole = ::lseek(fd_.get(), 0, SEEK_HOLE);
  if (hole < 0) return -errno;
  if (static_cast<std::size_t>(hole) < size_) return -EFAULT;
  return touch_pages();
}

int SharedMemory::touch_pages() const {
  const auto touch = [](std::byte* part, std::size_t size) {
    while (::madvise(part, size, MADV_POPULATE_WRITE) != 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      if (errno != EINVAL) return false;
      // Linux before 5.14 does not know the advice: writes to each page what it holds.
      for (std::size_t at = 0; at < size; at += page_size())
        std::atomic_ref(*reinterpret_cast<std::uint8_t*>(part + at)).fetch_or(0);
      break;
    }
    return true;
  };
  return os::in_parts(data_, size_, os::kMappedInAtOnce, touch) ? 0 : -errno;
}

bool SharedMemory::can_keep_pages() {
  static const bool can = [] {
    const os::UniqueFd fd(::memfd_create("stp-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    return fd && ::fcntl(fd.get(), F_ADD_SEALS, kSealFutureWrite) == 0;
  }();
  return can;
}

std::shared_ptr<SharedMemory> SharedMemory::adopt(int fd, std::size_t offset, std::size_t size) {
  os::UniqueFd owned(fd);
  if (const auto error = check_shareable(fd, offset, size); error != 0) {
    errno = -error;
    return nullptr;
  }
  auto made = map(std::move(owned), offset, size);
  if (made == nullptr) return nullptr;
  if (const auto error = made->touch_pages(); error != 0) {
    errno = -error;
    return nullptr;
  }
  return made;
}

// Does not populate: most of a channel is room for bursts that may never come, so the kernel
// allocates its pages when they are first used.
std::shared_ptr<SharedMemory> SharedMemory::map(os::UniqueFd fd, std::size_t offset,
                                                std::size_t size) {
  auto* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                          static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(std::move(fd), static_cast<std::byte*>(at), size));
}

// munmap() holds locks of this process, so a part at a time is unmapped. What was offered may be
// taken away at this moment, page by page: munmap() would wait for that, so it is stopped first,
// which holds no lock of this process.
SharedMemory::~SharedMemory() {
  if (offered_ && fd_) ::fcntl(fd_.get(), F_ADD_SEALS, kSealFutureWrite);
  if (offered_)
    os::unmap_in_turns(data_, size_);
  else
    os::in_parts(data_, size_, os::kUnmappedAtOnce,
                 [](std::byte* at, std::size_t size) { return ::munmap(at, size) == 0; });
}

// ---- the guard

GuardedRanges::GuardedRanges(std::size_t most) : most_(most) {
  auto* const room = ::mmap(nullptr, most * sizeof(Entry), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  entries_ = static_cast<Entry*>(room);
}

GuardedRanges::~GuardedRanges() {
  ::munmap(entries_, most_ * sizeof(Entry));
}

std::size_t GuardedRanges::first_not_above(std::uintptr_t at) const {
  std::size_t low = 0, high = count_.load(std::memory_order_relaxed);
  while (low < high) {
    const auto middle = (low + high) / 2;
    if (entries_[middle].begin.load(std::memory_order_relaxed) > at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void GuardedRanges::move(std::size_t to, std::size_t from) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  entries_[to].begin.store(entries_[from].begin.load(kRelaxed), kRelaxed);
  entries_[to].end.store(entries_[from].end.load(kRelaxed), kRelaxed);
  entries_[to].torn.store(entries_[from].torn.load(kRelaxed), kRelaxed);
}

int GuardedRanges::add(MutableBytes range, Torn* torn) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  const Lock lock(mutex_);
  const auto count = count_.load();
  if (count == most_) return -ENOMEM;
  const auto at = first_not_above(begin);
  changes_.fetch_add(1);
  for (auto i = count; i > at; --i) move(i, i - 1);
  entries_[at].begin.store(begin);
  entries_[at].end.store(begin + range.size());
  entries_[at].torn.store(torn);
  count_.store(count + 1);
  changes_.fetch_add(1);
  return 0;
}

void GuardedRanges::remove(MutableBytes range) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  const Lock lock(mutex_);
  const auto count = count_.load();
  const auto at = first_not_above(begin);
  if (at == count || entries_[at].begin.load() != begin) return;
  changes_.fetch_add(1);
  for (auto i = at; i + 1 < count; ++i) move(i, i + 1);
  count_.store(count - 1);
  changes_.fetch_add(1);
}

bool GuardedRanges::find(std::uintptr_t at, Range& out) const {
  for (;;) {
    const auto version = changes_.load();
    if (version % 2 != 0) continue;  // another thread is changing the table: a millisecond at most
    const auto index = first_not_above(at);
    const auto found = index < count_.load();
    if (found)
      out = {entries_[index].begin.load(), entries_[index].end.load(), entries_[index].torn.load()};
    if (changes_.load() == version) return found && at < out.end;
  }
}

namespace {

struct sigaction before {};  // the action for SIGBUS that was installed before ours

os::UniqueFd make_watcher() {
  os::UniqueFd made(
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

MemoryGuard::MemoryGuard() : watcher_(make_watcher()), ranges_(room(os::most_mappings())) {
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

}  // namespace stp::ipc
