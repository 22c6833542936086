// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <optional>

#include "libst/os/mapping_turn.h"
#include "stp/base/assert.h"

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
  while (::madvise(data_, size_, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) return -errno;
    // Linux before 5.14 does not know the advice: writes to each page what it holds.
    for (std::size_t at = 0; at < size_; at += page_size())
      std::atomic_ref(*reinterpret_cast<std::uint8_t*>(data_ + at)).fetch_or(0);
    break;
  }
  return 0;
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

// munmap() holds locks of this process. What was offered may be taken away at this moment, page by
// page: munmap() would wait for that, so it is stopped first, which holds no lock of this process.
SharedMemory::~SharedMemory() {
  if (offered_ && fd_) ::fcntl(fd_.get(), F_ADD_SEALS, kSealFutureWrite);
  std::optional<os::MappingTurn> turn;
  if (offered_) turn.emplace();
  ::munmap(data_, size_);
}

}  // namespace stp::ipc
